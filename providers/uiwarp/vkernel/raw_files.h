// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// File system calls that only the virtual kernel needs, straight to the kernel like those in
// core/raw_sys.h: libc's own are what the preload library interposes.
// All return the value of the call, or -errno; errno itself is left alone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct stat;

namespace uiw::vkernel::raw {

// Names are relative to the directory `folder`; a link in the last place is not followed, but by
// chmod.
int open(int folder, const char* name, int flags, unsigned mode = 0);
int lstat(int folder, const char* name, struct stat* out);
int mkdir(int folder, const char* name, unsigned mode);
int chmod(int folder, const char* name, unsigned mode);
// Sets access and modification time, in seconds since 1970.
int set_times(int folder, const char* name, long seconds);
int symlink(const char* target, int folder, const char* name);
int rename(int folder, const char* from, const char* to);
// `flags`: AT_REMOVEDIR for a directory, which has to be empty.
int unlink(int folder, const char* name, int flags = 0);
long readlink(int folder, const char* name, char* out, size_t size);
// By its path from / downwards.
int lstat(const char* path, struct stat* out);
// Waits without limit while `word` is `value`, which another thread of this process changes before
// it wakes. 0, or -EINTR when a signal handler ran that was installed without SA_RESTART: of the
// calls that wait and take nothing away, futex() without a time limit is the one that the kernel
// takes up again after the others (signal(7)).
int wait_while(const std::atomic<uint32_t>& word, uint32_t value);
void wake_all(const std::atomic<uint32_t>& word);
int getpid();
// Whether this thread has CAP_NET_ADMIN.
bool may_administer_network();
// Whether a thread of this process with that number (gettid) has not ended.
bool thread_exists(int thread);
// A signal handler cuts it short.
void sleep(long nanoseconds);
// Copies memory of this process as the kernel does it: how many bytes, fewer when what follows them
// cannot be read, or written to; -EFAULT when that is so of the first.
long read_own_memory(void* to, const void* from, size_t size);
long write_own_memory(void* to, const void* from, size_t size);
// `operation` as of flock().
int flock(int fd, int operation);
int dup3(int fd, int copy, int flags);

// Names in a directory without "." and "..", unsorted; `folder` may be AT_FDCWD. 0 or -errno.
int list_directory(int folder, const char* name, std::vector<std::string>& names);

}  // namespace uiw::vkernel::raw
