// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which network interfaces get a device: what UIWARP_DEVICES says. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace uiw::core {

// What a device's name has in front of its interface's.
inline constexpr char kDevicePrefix[] = "uiw_";

// `list`: names separated by commas, with *, ? and [...] as in file names; ! or - in front of one
// leaves out. With names of both kinds, or the first only, an interface gets a device if one of the
// first is its name and none of the second; with the second only, if none of them is. A device's
// name stands for its interface's. An empty list chooses all.
bool is_chosen(std::string_view list, const std::string& interface);

// Those of its names that ask for one device each: without patterns, and without those that leave
// out.
std::vector<std::string> single_names(std::string_view list);

// Whether `name`, one of those, is that of this interface or of its device.
bool is_name_of(std::string_view name, const std::string& interface);

// Whether it is such a list, and not empty.
bool is_device_list(std::string_view text);

}  // namespace uiw::core
