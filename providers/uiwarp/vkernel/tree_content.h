// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the virtual /sys and /dev show: a pure function of the devices, their states and the face.
// Which file is read by whom: doc/vkernel.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/face.h"

namespace uiw::vkernel {

struct TreeEntry {
  enum class Kind { kDirectory, kFile, kLink };
  Kind kind = Kind::kDirectory;
  std::string path;     // relative to the root of the tree: "sys/class/infiniband"
  std::string content;  // of a file; target of a link
};

// Every entry, each directory before what it contains. The same devices give the same list.
std::vector<TreeEntry> tree_content(std::span<const device::Listed> devices,
                                    const device::Face& face);

// 16 hexadecimal digits that name this content.
std::string tree_hash(std::span<const TreeEntry> entries);

}  // namespace uiw::vkernel
