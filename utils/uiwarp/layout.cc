// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "layout.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "build_config.h"

namespace uiw::tool {
namespace {

constexpr char kProviderName[] = "libuiwarp";
constexpr char kProviderSuffix[] = "-rdmav" UIWARP_PABI_TEXT ".so";

std::string self_path() {
  char buffer[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<size_t>(size)) : std::string();
}

// `path` without "..", or empty when it does not exist.
std::string existing(const std::string& path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) ? std::string(buffer) : std::string();
}

std::string first_existing(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (std::string found = existing(path); !found.empty()) return found;
  }
  return {};
}

}  // namespace

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Layout find_layout() {
  Layout layout;
  layout.binary = self_path();
  const std::string bin = directory_of(layout.binary);
  layout.probe =
      first_existing({bin + "/uiwarp-probe", bin + "/" UIWARP_BIN_TO_LIBEXEC "/uiwarp-probe"});

  const std::string parent = directory_of(bin);
  layout.faults =
      first_existing({parent + "/share/uiwarp/faults", bin + "/" UIWARP_BIN_TO_DATA "/faults"});
  layout.looked_in = {(parent == "/" ? "" : parent) + "/lib"};
  const std::string installed = existing(bin + "/" UIWARP_BIN_TO_LIB);
  if (!installed.empty() && installed != layout.looked_in[0]) layout.looked_in.push_back(installed);
  for (const std::string& lib : layout.looked_in) {
    // The name the loader uses, not what a link resolves to: it is what ends up in /proc/*/maps.
    const std::string directory = existing(lib);
    if (directory.empty()) continue;
    const std::string preload = directory + "/libuiwarp-preload.so";
    const std::string core = directory + "/libuiwarp.so.0";
    if (layout.preload.empty() && access(preload.c_str(), F_OK) == 0) layout.preload = preload;
    if (layout.core.empty() && access(core.c_str(), F_OK) == 0) layout.core = core;
    for (const char* folder : {"/", "/libibverbs/"}) {
      const std::string prefix = directory + folder + kProviderName;
      if (layout.provider.empty() && access((prefix + kProviderSuffix).c_str(), F_OK) == 0) {
        layout.provider = prefix + kProviderSuffix;
        layout.provider_prefix = prefix;
      }
    }
    if (layout.complete()) break;
  }
  return layout;
}

}  // namespace uiw::tool
