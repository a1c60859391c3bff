// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "build_config.h"
#include "checks.h"
#include "core/settings.h"
#include "core/trace_options.h"
#include "environment.h"
#include "host_devices.h"
#include "uiwarp/uiwarp-abi.h"

namespace uiw::tool {
namespace {

constexpr char kPrivateVersion[] = "IBVERBS_PRIVATE_" UIWARP_PABI_TEXT;
constexpr char kRegister[] = "verbs_register_driver_" UIWARP_PABI_TEXT;

// The file a loaded library came from, links resolved: it carries rdma-core's version.
std::string file_of(void* symbol) {
  Dl_info info;
  char path[PATH_MAX];
  if (!symbol || !dladdr(symbol, &info) || !realpath(info.dli_fname, path)) return "unknown file";
  return path;
}

// What its file is named behind ".so.": "1.14.44.0". Empty when that is no version.
std::string version_of(const std::string& file) {
  constexpr std::string_view kMark = ".so.";
  const size_t mark = file.rfind(kMark);
  const std::string version = mark == file.npos ? "" : file.substr(mark + kMark.size());
  return version.find('.') == version.npos ? "" : version;
}

// rdma-core's own stands behind two numbers that are the library's: "44.0".
std::string rdma_core_of(const std::string& library_version) {
  const size_t first = library_version.find('.');
  const size_t second =
      first == library_version.npos ? first : library_version.find('.', first + 1);
  return second == library_version.npos ? "" : library_version.substr(second + 1);
}

void check_libibverbs(Report& report) {
  void* library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    report.fail("libibverbs", std::string("libibverbs not found: ") + dlerror(),
                "Install it: apt-get install libibverbs1.");
    return;
  }
  const std::string file = file_of(dlsym(library, "ibv_get_device_list"));
  report.version("libibverbs", version_of(file));
  report.version("rdma_core", rdma_core_of(version_of(file)));
  if (dlvsym(library, kRegister, kPrivateVersion))
    report.ok("libibverbs", "libibverbs with " + std::string(kPrivateVersion) + ": " + file);
  else
    report.fail(
        "libibverbs", "libibverbs does not offer " + std::string(kPrivateVersion) + ": " + file,
        "This uiwarp was built for another rdma-core release: build it for the installed one.");
}

void check_librdmacm(Report& report) {
  void* library = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    report.fail("librdmacm", std::string("librdmacm not found: ") + dlerror(),
                "Install it: apt-get install librdmacm1.");
    return;
  }
  const std::string file = file_of(dlsym(library, "rdma_create_id"));
  report.version("librdmacm", version_of(file));
  report.ok("librdmacm", "librdmacm: " + file);
}

// Where programs find the files that tell of the devices: as the stack itself decides.
void check_tree(void* library, Report& report) {
  constexpr char kClass[] = "/sys/class/infiniband";
  auto redirect =
      reinterpret_cast<int (*)(const char*, char*, size_t)>(dlsym(library, "uiwarp_vk_redirect"));
  char path[PATH_MAX];
  if (redirect && redirect(kClass, path, sizeof path) == 1)
    report.ok("device_files", "files that describe the devices: " +
                                  std::string(path, strlen(path) + 1 - sizeof kClass));
  else if (!stays_away())
    report.fail(
        "device_files", "no directory for the files that describe the devices",
        "Set UIWARP_RUNTIME_DIR to a directory that belongs to you and that nobody else can write "
        "to.");
}

void check_parts(const Layout& layout, Report& report) {
  std::string looked;
  for (const std::string& directory : layout.looked_in) looked += " " + directory;
  const std::string advice =
      "Looked in" + looked + ". Build everything (cmake --build build) or install uiwarp again.";
  if (layout.preload.empty())
    report.fail("preload", "libuiwarp-preload.so not found", advice);
  else
    report.ok("preload", "preload library: " + layout.preload);
  if (layout.provider.empty())
    report.fail("provider", "provider libuiwarp-rdmav" UIWARP_PABI_TEXT ".so not found", advice);
  else
    report.ok("provider", "provider: " + layout.provider);
  if (layout.probe.empty())
    report.fail("probe", "uiwarp-probe not found beside " + layout.binary, advice);
  if (layout.core.empty()) {
    report.fail("stack", "libuiwarp.so.0 not found", advice);
    return;
  }
  void* library = dlopen(layout.core.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    report.fail("stack", std::string("libuiwarp.so.0 cannot be loaded: ") + dlerror(),
                "Install the library that the message names.");
    return;
  }
  auto version = reinterpret_cast<int (*)()>(dlsym(library, "uiwarp_abi_version"));
  const int found = version ? version() : -1;
  if (found == UIWARP_ABI_VERSION) {
    report.ok("stack", "stack: " + layout.core + ", version " UIWARP_VERSION);
    check_tree(library, report);
  } else {
    report.fail("stack",
                "stack: " + layout.core + " has private ABI " + std::to_string(found) +
                    ", this command " + std::to_string(UIWARP_ABI_VERSION),
                "The parts come from different builds: build or install all of uiwarp again.");
  }
}

// Nothing is kept of what is said where the file of the log cannot be made.
void check_log_file(Report& report) {
  const char* const text = getenv("UIWARP_LOG_FILE");
  if (!text || strcmp(text, "off") == 0) return;
  if (const std::string why = why_no_file(text); !why.empty())
    report.warn("log_file", "setting UIWARP_LOG_FILE='" + std::string(text) + "': " + why,
                "Messages go to standard error only. Name a file in an existing directory.");
}

// A valid UIWARP_TRACE whose file cannot be written: a sentence. Else empty.
std::string why_no_trace(const std::string& name, const char* text) {
  core::TraceOptions trace;
  if (name != "UIWARP_TRACE" || !core::parse_trace_options(text, trace) || trace.file.empty())
    return {};
  return why_untraceable(std::string(trace.file));
}

void check_settings(Report& report) {
  for (const std::string& misspelt : core::misspelt_settings())
    report.warn("misspelt_settings", misspelt, "`uiwarp settings` lists the valid names.");
  check_log_file(report);
  core::Settings scratch;
  int set = 0;
  bool good = true;
  for (const core::SettingInfo& info : core::setting_table()) {
    const char* text = getenv(info.name);
    if (!text) continue;
    set++;
    std::string problem;
    if (core::parse_setting(info.name, text, scratch, problem))
      problem = why_no_trace(info.name, text);
    if (problem.empty()) continue;
    good = false;
    report.fail("settings", "setting " + std::string(info.name) + "='" + text + "'", problem);
  }
  if (good)
    report.ok("settings", "settings: " + (set ? std::to_string(set) + " set, all valid"
                                              : std::string("defaults")));
}

// As what programs see the devices.
void check_face(Report& report) {
  switch (core::settings().face) {
    case core::Face::kIwarp:
      return report.ok("face", "face: iwarp; for programs that want RoCE: uiwarp run --as roce");
    case core::Face::kRoce:
      return report.ok("face", "face: roce (UIWARP_FACE); the wire protocol is still iWARP");
  }
}

void check_real_devices(Report& report) {
  const std::string names = host_devices();
  if (names.empty())
    report.ok("host_devices", "no other RDMA device on this host");
  else if (!stays_away())
    report.ok("host_devices",
              "the host's own RDMA devices are hidden (UIWARP_MODE=exclusive):" + names);
  else
    report.fail(
        "host_devices",
        "this host has RDMA devices of its own, so programs see those and not uiwarp's:" + names,
        "To use uiwarp's instead: UIWARP_MODE=exclusive.");
}

}  // namespace

void check_install(const Layout& layout, Report& report) {
  check_libibverbs(report);
  check_librdmacm(report);
  check_parts(layout, report);
  check_settings(report);
  check_face(report);
  check_real_devices(report);
}

}  // namespace uiw::tool
