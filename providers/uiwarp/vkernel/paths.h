// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which paths are ours, and what they become.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/settings.h"

namespace uiw::vkernel {

// Resolves ".", ".." and repeated slashes of an absolute path by its text alone, which is exact
// inside our tree because that has no links to directories. A trailing slash stays. Writes to `out`
// (NUL-terminated) and returns its length, or 0 when `path` is not absolute or does not fit.
size_t normalise(std::string_view path, char* out, size_t out_size);

// Whether a normalised path lies where the virtual kernel answers: /sys/class/infiniband,
// /sys/class/infiniband_verbs, /sys/class/misc/rdma_cm, /dev/infiniband, or below one of them.
bool is_rdma_path(std::string_view normalised);

// Which device file a normalised path names, that of a device that has gone included.
enum class DeviceNode { kNone, kRdmaCm, kUverbs };
// `minor`: of kUverbs.
DeviceNode device_node(std::string_view normalised, uint32_t& minor);

// Whether a normalised path names a directory that lists the devices: who opens it wants to know
// which there are now.
bool lists_devices(std::string_view normalised);

// Whether uiwarp answers at all: not with UIWARP_MODE=auto on a host that has RDMA devices, and not
// when the tree could not be written. Decided once. Thread-safe.
bool is_active();

// The first of these reasons; `real_class` is the directory that lists the host's own devices.
bool stays_away(core::HostMode mode, const char* real_class);

}  // namespace uiw::vkernel
