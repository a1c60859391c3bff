// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/device_choice.h"

#include <fnmatch.h>

#include <utility>

namespace uiw::core {
namespace {

struct Pattern {
  bool leaves_out;
  std::string glob;
};

// Takes the first pattern from `list`.
Pattern next(std::string_view& list) {
  const size_t comma = list.find(',');
  std::string_view text = list.substr(0, comma);
  list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  const bool leaves_out = text.starts_with('!') || text.starts_with('-');
  if (leaves_out) text.remove_prefix(1);
  return {leaves_out, std::string(text)};
}

}  // namespace

bool is_chosen(std::string_view list, const std::string& interface) {
  const std::string device = kDevicePrefix + interface;
  bool wanted = false, only_without = true;
  while (!list.empty()) {
    const Pattern pattern = next(list);
    const bool is_it = fnmatch(pattern.glob.c_str(), interface.c_str(), 0) == 0 ||
                       fnmatch(pattern.glob.c_str(), device.c_str(), 0) == 0;
    if (is_it && pattern.leaves_out) return false;
    only_without &= pattern.leaves_out;
    wanted |= is_it;
  }
  return wanted || only_without;
}

std::vector<std::string> single_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    Pattern pattern = next(list);
    if (!pattern.leaves_out && pattern.glob.find_first_of("*?[\\") == std::string::npos)
      names.push_back(std::move(pattern.glob));
  }
  return names;
}

bool is_name_of(std::string_view name, const std::string& interface) {
  return name == interface || name == kDevicePrefix + interface;
}

bool is_device_list(std::string_view text) {
  if (text.empty() || text.ends_with(',')) return false;
  while (!text.empty()) {
    const std::string glob = next(text).glob;
    if (glob.empty() || glob.find_first_of("!/ \t\n") == 0 || glob.find(' ') != std::string::npos)
      return false;
  }
  return true;
}

}  // namespace uiw::core
