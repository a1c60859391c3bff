// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "system_wide.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "child.h"
#include "environment.h"
#include "trust.h"
#include "without_device.h"

namespace uiw::tool {
namespace {

constexpr char kPreloadList[] = "/etc/ld.so.preload";
constexpr char kDriverFile[] = "/etc/libibverbs.d/uiwarp.driver";
constexpr char kLibrary[] = "libuiwarp-preload.so";
constexpr char kSeparators[] = " \t:";  // ld.so's, beside the end of a line
constexpr int kLimitMs = 10000;

std::string content_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Under another name first, so that no program that starts meanwhile finds half of it.
bool replace_file(const std::string& path, const std::string& content) {
  const std::string fresh = path + ".uiwarp";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  bool good = fd >= 0;
  if (good) {
    good = write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
           fchmod(fd, 0644) == 0;  // whatever the umask is
    close(fd);
    good = good && rename(fresh.c_str(), path.c_str()) == 0;
  }
  if (good) return true;
  fprintf(stderr, "uiwarp: cannot write %s: %s%s\n", path.c_str(), strerror(errno),
          geteuid() == 0 ? "" : ". It needs root (sudo)");
  unlink(fresh.c_str());
  return false;
}

bool remove_file(const char* path) {
  if (unlink(path) == 0 || errno == ENOENT) return true;
  fprintf(stderr, "uiwarp: cannot remove %s: %s\n", path, strerror(errno));
  return false;
}

// What a package installs names the provider only; ours, where it is.
std::string driver_line(const Layout& layout) {
  return "driver " + layout.provider_prefix + "\n";
}

bool remove_driver_file() {
  return content_of(kDriverFile).rfind("driver /", 0) != 0 || remove_file(kDriverFile);
}

// A list without entries goes altogether, as it was before there was one.
bool write_preload_list(const std::string& content) {
  return content.empty() ? remove_file(kPreloadList) : replace_file(kPreloadList, content);
}

bool fits_into_list(const std::string& path) {
  return path.find_first_of(std::string(kSeparators) + "\n#") == std::string::npos;
}

// Why what is loaded into every program must not come from there, and what to do; else empty.
std::string why_untrusted(const Layout& layout) {
  for (const std::string& file : loaded_files(layout)) {
    const Untrusted found = find_untrusted(file);
    if (!found) continue;
    return found.said + ",\nwhich leads to " + file +
           ": what is put there would run in every program, set-uid ones and root's too.\n"
           "Install uiwarp where root alone may write, as packages do, or\n"
           "    cmake --install BUILD --prefix /usr/local" +
           (found.mend.empty() ? "" : "\nor, as root: " + found.mend);
  }
  return {};
}

bool sees_devices(const Layout& layout, Visibility how, std::string& said) {
  const ChildResult result = run_child(layout, {layout.probe, "devices"}, kLimitMs, how);
  said = result.output;
  return lists_devices(result);
}

int tell_enabled(const Layout& layout) {
  printf(
      "Every program that is started from now on sees the devices: %s names %s.\n"
      "`uiwarp disable` ends it.\n",
      kPreloadList, layout.preload.c_str());
  return 0;
}

// Without a device to be seen now: what can be seen is that the loader takes the library.
int enable_unseen(const Layout& layout, const std::string& before) {
  const bool is_driver_known = access(kDriverFile, F_OK) == 0;
  if (!write_preload_list(without_preload(before) + layout.preload + "\n")) return 1;
  if (!is_driver_known && !replace_file(kDriverFile, driver_line(layout))) {
    write_preload_list(before);
    return 1;
  }
  std::string said;
  sees_devices(layout, Visibility::kSystemWide, said);
  if (said.find("cannot be preloaded") == said.npos) return tell_enabled(layout);
  if (!is_driver_known) remove_driver_file();
  write_preload_list(before);
  fprintf(stderr, "uiwarp: nothing was changed, because programs cannot load the library:\n%s",
          said.c_str());
  return 1;
}

}  // namespace

std::string without_preload(const std::string& content, std::string* found) {
  std::string kept;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    const size_t comment = std::min(line.find('#'), line.size());
    std::string entries;
    bool ours = false;
    for (size_t at = 0; at < comment;) {
      const size_t end = std::min(line.find_first_of(kSeparators, at), comment);
      const std::string entry = line.substr(at, end - at);
      at = end + 1;
      if (entry.empty()) continue;
      if (entry.substr(entry.rfind('/') + 1) == kLibrary) {
        ours = true;
        if (found != nullptr) *found = entry;
      } else {
        entries += entry + " ";
      }
    }
    if (!ours)
      kept += line + "\n";
    else if (const std::string left = entries + line.substr(comment); !left.empty())
      kept += left + "\n";
  }
  return kept;
}

std::string preloaded_system_wide() {
  std::string found;
  without_preload(content_of(kPreloadList), &found);
  return found;
}

std::string closed_to_others(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat st;
    // A file is read, a directory passed.
    const mode_t needed = end == std::string::npos ? S_IROTH : S_IXOTH;
    if (stat(part.c_str(), &st) == 0 && (st.st_mode & needed) == 0) return part;
    if (end == std::string::npos) return {};
  }
}

int enable_system_wide(const Layout& layout, Enable how) {
  std::string problem = why_incomplete(layout);
  if (problem.empty() && !fits_into_list(layout.preload))
    problem = "the path " + layout.preload + " cannot be written in " + kPreloadList +
              ". Install uiwarp at a path without spaces and colons.";
  if (problem.empty()) {
    const std::string closed = closed_to_others(layout.preload);
    if (!closed.empty())
      problem = "other users have no access to " + closed +
                ", so their programs would print an error. Install uiwarp where they have access.";
  }
  // Before any of it runs here, as root.
  if (problem.empty()) problem = why_untrusted(layout);
  if (!problem.empty()) {
    fprintf(stderr, "uiwarp: %s\n", problem.c_str());
    return 125;
  }
  std::string said;
  const bool seen = sees_devices(layout, Visibility::kRun, said);
  if (!seen && how == Enable::kWhenSeen) {
    fprintf(stderr, "uiwarp: nothing was changed, because `uiwarp devices` shows no device:\n%s",
            said.c_str());
    for (const std::string& line : lines_of(without_device()))
      fprintf(stderr, "%s\n", line.c_str());
    fputs("`uiwarp enable --force` enables uiwarp for devices that appear later.\n", stderr);
    return 1;
  }
  const std::string before = content_of(kPreloadList);
  if (!seen) return enable_unseen(layout, before);
  if (!write_preload_list(without_preload(before) + layout.preload + "\n")) return 1;
  // Installed by a package the provider is known already.
  bool good = sees_devices(layout, Visibility::kSystemWide, said);
  if (!good && replace_file(kDriverFile, driver_line(layout))) {
    good = sees_devices(layout, Visibility::kSystemWide, said);
    if (!good) remove_driver_file();
  }
  if (!good) {
    write_preload_list(before);
    fprintf(stderr,
            "uiwarp: nothing was changed, because programs do not see the devices through "
            "%s:\n%s",
            kPreloadList, said.c_str());
    return 1;
  }
  return tell_enabled(layout);
}

int disable_system_wide() {
  std::string found;
  const std::string left = without_preload(content_of(kPreloadList), &found);
  if (!found.empty() && !write_preload_list(left)) return 1;
  if (!remove_driver_file()) return 1;
  puts(found.empty()
           ? "There was nothing to disable."
           : "Programs that are started from now on need `uiwarp run` to see the devices.");
  return 0;
}

}  // namespace uiw::tool
