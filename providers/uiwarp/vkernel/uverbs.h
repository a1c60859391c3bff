// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// /dev/infiniband/uverbsN: the command descriptor of a device.
//
// It is a descriptor of /dev/null, whose ioctl() gives ENOTTY; so libibverbs uses write() and reads
// the rest from /sys, and since the provider does everything else by itself, two commands are left:
// making a completion channel, and, of an imported device, asking for its asynchronous events. The
// latter is an ioctl() in any case.
#pragma once

#include <cstdint>

#include "vkernel/device_file.h"

namespace uiw::vkernel {

// Opens that of a device. `flags` as for open(); O_CLOEXEC and O_NONBLOCK count. The descriptor, or
// -errno.
int open_uverbs(uint32_t minor, int flags);

// See uiwarp_vk_command(), uiwarp_vk_give_async().
uint64_t command_of(int fd);
int give_async(int fd, int async_fd);

}  // namespace uiw::vkernel
