// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "environment.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "build_config.h"
#include "core/check_options.h"
#include "core/settings.h"
#include "core/shake_options.h"
#include "core/trace_options.h"
#include "faults.h"
#include "faults/files.h"
#include "target.h"
#include "trace/place.h"

namespace uiw::tool {

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

namespace {

std::string env(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// Whether files may be made there. Else errno says why not.
bool takes_files(const std::string& folder) {
  if (access(folder.c_str(), F_OK) != 0) return false;
  errno = ENOTDIR;
  return is_folder(folder) && access(folder.c_str(), W_OK | X_OK) == 0;
}

// Whether it is a file that may be written, or may be made. Else errno says why not.
bool can_be_written(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) {
    errno = EISDIR;
    return !is_folder(path) && access(path.c_str(), W_OK) == 0;
  }
  return takes_files(std::filesystem::path(absolute(path)).parent_path().string());
}

}  // namespace

std::string why_incomplete(const Layout& layout) {
  if (layout.complete()) return {};
  std::string text = "not found:";
  if (layout.preload.empty()) text += " libuiwarp-preload.so";
  if (layout.core.empty()) text += " libuiwarp.so.0";
  if (layout.provider.empty()) text += " libuiwarp-rdmav" UIWARP_PABI_TEXT ".so";
  text += "; looked in";
  for (const std::string& directory : layout.looked_in) text += " " + directory;
  return text + ". Build everything (cmake --build build) or install uiwarp again.";
}

std::string prepend(const std::string& item, const std::string& list, const char* separators,
                    char separator) {
  std::vector<std::string> elements;
  bool present = false;
  for (size_t at = 0; at <= list.size();) {
    size_t end = list.find_first_of(separators, at);
    if (end == std::string::npos) end = list.size();
    if (end > at) elements.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  for (const std::string& element : elements) present = present || element == item;
  std::string joined = present ? "" : item;
  for (const std::string& element : elements) {
    if (!joined.empty()) joined += separator;
    joined += element;
  }
  return joined;
}

bool set_environment(const Layout& layout, std::string& problem) {
  problem = why_incomplete(layout);
  if (!problem.empty()) return false;
  // ld.so divides LD_PRELOAD at spaces and colons, libibverbs its list at colons and semicolons.
  if (layout.preload.find_first_of(" :;") != std::string::npos) {
    problem = "the path " + layout.preload +
              " holds a space, colon or semicolon, which LD_PRELOAD " +
              "cannot express. Move the tree to a path without them.";
    return false;
  }
  std::string preload = prepend(layout.preload, env("LD_PRELOAD"), " :", ':');
  if constexpr (sizeof(UIWARP_SANITIZER_RUNTIME) > 1)
    preload = prepend(UIWARP_SANITIZER_RUNTIME, preload, " :", ':');
  setenv("LD_PRELOAD", preload.c_str(), 1);

  // libibverbs reads only the older name when both are set.
  const char* drivers = getenv("RDMAV_DRIVERS") ? "RDMAV_DRIVERS" : "IBV_DRIVERS";
  setenv(drivers, prepend(layout.provider_prefix, env(drivers), ":;", ':').c_str(), 1);
  return true;
}

namespace {

// Sets that variable, or says `wrong` and what is allowed.
bool choose(const char* variable, const std::string& value, const std::string& wrong,
            std::string& problem) {
  core::Settings scratch;
  std::string about_the_variable;
  if (core::parse_setting(variable, value.c_str(), scratch, about_the_variable)) {
    setenv(variable, value.c_str(), 1);
    return true;
  }
  problem = wrong + "; allowed: ";
  for (const core::SettingInfo& info : core::setting_table()) {
    if (std::string(info.name) == variable) problem += info.type;
  }
  return false;
}

}  // namespace

bool choose_face(const std::string& name, std::string& problem) {
  return choose("UIWARP_FACE", name, "there is no face '" + name + "' for --as", problem);
}

namespace {

// The program, or what starts it, may change its directory before it opens a device.
std::string with_absolute_paths(const std::string& options) {
  std::string result;
  for (size_t at = 0; at <= options.size();) {
    const size_t end = std::min(options.find(',', at), options.size());
    std::string option = options.substr(at, end - at);
    for (const std::string name : {"json=", "suppressions="})
      if (option.starts_with(name) && option.size() > name.size())
        option = name + absolute(option.substr(name.size()));
    result += (at ? "," : "") + option;
    at = end + 1;
  }
  return result;
}

}  // namespace

bool choose_check(const std::string& options, std::string& problem) {
  core::CheckOptions parsed;
  std::string wrong;
  if (!core::parse_check_options(options, parsed, &wrong)) {
    problem = "--check: " + wrong;
    return false;
  }
  // Before the program starts: later it would find no device, and go on without.
  const std::string json(parsed.json), suppressions(parsed.suppressions);
  if (!json.empty() && !can_be_written(json))
    problem = "--check: json=" + json + ": " + strerror(errno);
  else if (!suppressions.empty() && access(suppressions.c_str(), R_OK) != 0)
    problem = "--check: suppressions=" + suppressions + ": " + strerror(errno);
  if (!problem.empty()) return false;
  return choose("UIWARP_CHECK", with_absolute_paths(options),
                "--check: '" + options + "' is too long", problem);
}

bool is_taken_for_program(const std::string& word, std::string& problem) {
  core::CheckOptions ignored;
  int error = 0;
  if (!core::parse_check_options(word, ignored) || !find_program(word, error).empty()) return false;
  problem = "there is no program '" + word +
            "': options of --check follow it after a '=': --check=" + word;
  return true;
}

bool choose_faults(const std::string& name, std::string& problem) {
  faults::Rules ignored;
  const std::string path = find_faults(name, problem);
  if (!path.empty()) problem = faults::load(path, ignored);
  if (!problem.empty()) {
    problem = "--faults: " + problem;
    return false;
  }
  // As with --check: the program may change its directory.
  const std::string whole = path == faults::kNoRules ? path : absolute(path);
  return choose("UIWARP_FAULTS", whole, "--faults: '" + whole + "' is too long", problem);
}

bool choose_shake(const std::string& options, std::string& problem) {
  core::ShakeOptions parsed;
  std::string wrong;
  if (options != "off" && !core::parse_shake_options(options, parsed, &wrong)) {
    problem = "--shake " + options + ": " + wrong;
    return false;
  }
  return choose("UIWARP_SHAKE", options, "--shake: '" + options + "' is too long", problem);
}

std::string why_no_file(const std::string& file) {
  const std::string path = absolute(file);
  if (path[0] != '/') return "the working directory is gone: name " + file + " by its whole path";
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.find("%p") == folder.npos && !takes_files(folder))
    return "no file can be made in " + folder + ": " + strerror(errno);
  return {};
}

std::string why_untraceable(const std::string& file) {
  if (std::string why = why_no_file(file); !why.empty()) return why;
  const std::string path = absolute(file);
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) {
    if (errno != ENOENT) return path + ": " + strerror(errno);
    return {};
  }
  if (S_ISLNK(there.st_mode)) return path + " is a link, which is not followed: name another file";
  if (trace::look_at(path) == trace::Place::kForeign)
    return path + " is there and is no trace, so it stays as it is: name another file";
  return {};
}

bool choose_trace(const std::string& options, std::string& problem) {
  core::TraceOptions parsed;
  std::string wrong;
  if (!core::parse_trace_options(options, parsed, &wrong) || parsed.file.empty()) {
    problem = "--trace: " + (wrong.empty() ? "'off' is no file" : wrong);
    return false;
  }
  if (wrong = why_untraceable(std::string(parsed.file)); !wrong.empty()) {
    problem = "--trace: " + wrong;
    return false;
  }
  // As with --check: the program may change its directory.
  const std::string path = absolute(std::string(parsed.file));
  return choose("UIWARP_TRACE", path + options.substr(parsed.file.size()),
                "--trace: '" + options + "' is too long", problem);
}

}  // namespace uiw::tool
