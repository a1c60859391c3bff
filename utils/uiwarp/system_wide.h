// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Every program of a system sees the devices, whatever its environment: the loader preloads what
// /etc/ld.so.preload names, and libibverbs knows the provider from /etc/libibverbs.d. This is for
// images of containers above all.
#pragma once

#include <string>

#include "layout.h"

namespace uiw::tool {

// kWhenSeen: unless programs see a device by it. kForced: also where there is none now, as in a
// network namespace whose lo is down.
enum class Enable { kWhenSeen, kForced };

// `uiwarp enable`, `uiwarp disable`: change these files, say so, and return the exit status.
int enable_system_wide(const Layout& layout, Enable how);
int disable_system_wide();

// What /etc/ld.so.preload names as our preload library; empty when it does not.
std::string preloaded_system_wide();

// Every user's programs have to get at it: empty, or the first part of the absolute `path` where
// they may not.
std::string closed_to_others(const std::string& path);

// The content of an ld.so.preload without our preload library, wherever that lies; all else stays.
// `*found` gets the last path that it had.
std::string without_preload(const std::string& content, std::string* found = nullptr);

}  // namespace uiw::tool
