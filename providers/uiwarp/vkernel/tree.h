// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where the virtual /sys and /dev lie on disk: <base>/uiwarp-<uid>/<hash>/{sys,dev}.
//
// A tree is named by its content, appears by one rename() and never changes, so any number of
// processes share it. When the devices change, paths lead to another tree. All times are a
// constant: libibverbs takes a device whose directory has another modification time for a new one,
// and neither a tree that a /tmp cleaner removed and we made again nor the next one must make the
// devices that are still there look like that.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "vkernel/tree_content.h"

namespace uiw::vkernel {

// Seconds since 1970 that every entry of a tree bears as modification time.
inline constexpr long kTreeTime = 1'704'067'200;

// How long trees of other device lists are left, the last eight of them: networks come and go, in
// tests above all.
inline constexpr long kKeepSeconds = 3600;

// Makes the tree below `base`, or finds the one made before, and returns its root with symbolic
// links resolved. Everything is reached by descriptors and no link is followed, so that nobody who
// may write to `base` can lead us elsewhere. What already lies there is only used when it is a
// directory of this user's that nobody else can write to; otherwise one with an unpredictable name
// is made beside it, or found again. Errors: those of mkdir, open and write for `base`; EPERM when
// others can change it (Folder::open_base). Thread- and process-safe.
core::Result<std::string> place_tree(const std::string& base, std::span<const TreeEntry> entries,
                                     long keep_seconds = kKeepSeconds);

// Where counters are published, beside the trees in the user's folder.
inline constexpr std::string_view kCountersFolder = "counters";

// The root for the devices of this process as they are now, in the first of UIWARP_RUNTIME_DIR,
// $XDG_RUNTIME_DIR, /dev/shm and /tmp that can be used; empty (reported once) when none can. The
// text is valid for the life of the process; when the tree has vanished it is made again.
// Thread-safe.
std::string_view tree_root();

// How many octets of `path` are the root of a tree where tree_root() has given one, be it a former
// one or another process's; 0: of none.
size_t root_length(std::string_view path);

}  // namespace uiw::vkernel
