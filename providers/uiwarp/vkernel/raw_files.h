// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// File system calls that only the virtual kernel needs, straight to the kernel like those in
// core/raw_sys.h: libc's own are what the preload library interposes.
// All return the value of the call, or -errno; errno itself is left alone.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

struct stat;

namespace uiw::vkernel::raw {

int lstat(const char* path, struct stat* out);
int chmod(const char* path, unsigned mode);
// Sets access and modification time, of a symbolic link itself.
int set_times(const char* path, long seconds);
long readlink(const char* path, char* out, size_t size);
// Waits without limit for `events` on one descriptor. 1, or -EINTR.
int poll_one(int fd, short events);
int getpid();
// Whether a thread of this process with that number (gettid) has not ended.
bool thread_exists(int thread);
// A signal handler cuts it short.
void sleep(long nanoseconds);
int dup3(int fd, int copy, int flags);

// Names in a directory without "." and "..", unsorted. 0 or -errno.
int list_directory(const char* path, std::vector<std::string>& names);
// Removes a directory and everything in it, following no link; whatever cannot be removed stays.
void remove_recursively(const std::string& path);

}  // namespace uiw::vkernel::raw
