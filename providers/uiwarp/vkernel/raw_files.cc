// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/raw_files.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "core/raw_sys.h"

namespace uiw::vkernel::raw {
namespace {

namespace sys = core::sys;

template <class... Arguments>
long call(long number, Arguments... arguments) {
  const int saved = errno;
  long result = ::syscall(number, arguments...);
  if (result == -1) result = -errno;
  errno = saved;
  return result;
}

// One record of getdents64(2).
struct DirectoryEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

}  // namespace

int open(int folder, const char* name, int flags, unsigned mode) {
  return sys::above_standard(
      static_cast<int>(call(SYS_openat, folder, name, flags | O_NOFOLLOW | O_CLOEXEC, mode)));
}

int lstat(int folder, const char* name, struct stat* out) {
  return static_cast<int>(call(SYS_newfstatat, folder, name, out, AT_SYMLINK_NOFOLLOW));
}

int mkdir(int folder, const char* name, unsigned mode) {
  return static_cast<int>(call(SYS_mkdirat, folder, name, mode));
}

int chmod(int folder, const char* name, unsigned mode) {
  return static_cast<int>(call(SYS_fchmodat, folder, name, mode));
}

int set_times(int folder, const char* name, long seconds) {
  const timespec times[2] = {{seconds, 0}, {seconds, 0}};
  return static_cast<int>(call(SYS_utimensat, folder, name, times, AT_SYMLINK_NOFOLLOW));
}

int symlink(const char* target, int folder, const char* name) {
  return static_cast<int>(call(SYS_symlinkat, target, folder, name));
}

int rename(int folder, const char* from, const char* to) {
  return static_cast<int>(call(SYS_renameat2, folder, from, folder, to, 0));
}

int unlink(int folder, const char* name, int flags) {
  return static_cast<int>(call(SYS_unlinkat, folder, name, flags));
}

int lstat(const char* path, struct stat* out) {
  return lstat(AT_FDCWD, path, out);
}

long readlink(int folder, const char* name, char* out, size_t size) {
  return call(SYS_readlinkat, folder, name, out, size);
}

int wait_while(const std::atomic<uint32_t>& word, uint32_t value) {
  while (word.load(std::memory_order_acquire) == value) {
    const long result = call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr);
    if (result == -EINTR) return -EINTR;
  }
  return 0;
}

void wake_all(const std::atomic<uint32_t>& word) {
  call(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

int getpid() {
  return static_cast<int>(call(SYS_getpid));
}

bool may_administer_network() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (call(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective & CAP_TO_MASK(CAP_NET_ADMIN)) != 0;
}

bool thread_exists(int thread) {
  return call(SYS_tgkill, getpid(), thread, 0) == 0;
}

void sleep(long nanoseconds) {
  const timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  call(SYS_nanosleep, &time, nullptr);
}

long read_own_memory(void* to, const void* from, size_t size) {
  const iovec here{to, size}, there{const_cast<void*>(from), size};
  return call(SYS_process_vm_readv, getpid(), &here, 1ul, &there, 1ul, 0ul);
}

long write_own_memory(void* to, const void* from, size_t size) {
  const iovec here{const_cast<void*>(from), size}, there{to, size};
  return call(SYS_process_vm_writev, getpid(), &here, 1ul, &there, 1ul, 0ul);
}

int flock(int fd, int operation) {
  return static_cast<int>(call(SYS_flock, fd, operation));
}

int dup3(int fd, int copy, int flags) {
  return static_cast<int>(call(SYS_dup3, fd, copy, flags));
}

int list_directory(int folder, const char* name, std::vector<std::string>& names) {
  const int fd = raw::open(folder, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return fd;
  alignas(DirectoryEntry) char buffer[4096];
  long got;
  while ((got = call(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      if (std::strcmp(entry->name, ".") != 0 && std::strcmp(entry->name, "..") != 0) {
        names.emplace_back(entry->name);
      }
      at += entry->length;
    }
  }
  sys::close(fd);
  return static_cast<int>(got);
}

}  // namespace uiw::vkernel::raw
