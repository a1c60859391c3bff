// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which network interfaces get a device: what UIWARP_DEVICES says. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uiw::core {

// The prefix of a device's name before the interface's name.
inline constexpr char kDevicePrefix[] = "uiw_";

// `list`: patterns separated by commas, with *, ? and [...] as in file names; ! or - in front
// excludes. If there are patterns without ! or -, an interface gets a device if one of these
// matches it and no excluding one does; if all are excluding, if none matches. A device's name
// stands for its interface. An empty list chooses all.
bool is_chosen(std::string_view list, const std::string& interface);

// The entries of the list that name one device each: no patterns, no exclusions.
std::vector<std::string> single_names(std::string_view list);

// Whether `name`, one of those, names this interface or its device.
bool is_name_of(std::string_view name, const std::string& interface);

// Whether `text` is such a list, and not empty.
bool is_device_list(std::string_view text);

}  // namespace uiw::core
