// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which descriptors of this process are virtual devices.
//
// A descriptor can be closed and its number reused without us seeing it (a raw system call, a
// library that closes everything). So an entry also records what fstat() said, and every use
// compares: a mismatch means the number is somebody else's now, and the entry is forgotten.
//
// Processes: after fork() the child's entries answer ENODEV and its rdma_cm descriptors are at end
// of file, so that it cannot take the parent's events. A child that shares our memory (vfork, or a
// clone without fork's handlers) never changes the table: it closes descriptors of its own.
//
// One lock guards the table; it is never held while a DeviceFile runs.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "vkernel/device_file.h"

struct stat;

namespace uiw::vkernel {

// `fd` is now this file. Takes over the creator's reference; on failure the file is closed() and
// dropped, and `fd` still belongs to the caller. 0, EMFILE (fd number too high), ENOMEM. Any
// thread.
int register_file(int fd, DeviceFile* file);

// write(): see uiwarp_vk_write().
ssize_t write_file_descriptor(int fd, const void* buffer, size_t size, bool& handled,
                              int& error_number);
// ioctl(): see uiwarp_vk_ioctl().
int control_file_descriptor(int fd, unsigned long request, void* argument, bool& handled,
                            int& error_number);
// See uiwarp_vk_closing(), uiwarp_vk_dup(), uiwarp_vk_fix_stat().
void forget_descriptor(int fd);
void copy_descriptor(int fd, int copy);
void fix_stat(int fd, struct stat& status);

// See uiwarp_vk_keeps().
bool is_kept(int fd);

}  // namespace uiw::vkernel
