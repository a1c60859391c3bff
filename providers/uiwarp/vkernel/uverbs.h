// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// /dev/infiniband/uverbsN: the command descriptor of a device.
//
// It is a descriptor of /dev/null, whose ioctl() gives ENOTTY; so libibverbs uses write() and reads
// the rest from /sys, and since the provider does everything else by itself, one command is left:
// making a completion channel.
#pragma once

#include "vkernel/device_file.h"

namespace uiw::vkernel {

// Opens one. `flags` as for open(); O_CLOEXEC and O_NONBLOCK count. The descriptor, or -errno.
int open_uverbs(int flags);

}  // namespace uiw::vkernel
