// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/user_memory.h"

#include <cerrno>
#include <cstring>

#include "vkernel/raw_files.h"

namespace uiw::vkernel {
namespace {

// More than there is between a command on the stack and us.
constexpr uintptr_t kNear = 16 * 1024;
// Nothing is mapped below (vm.mmap_min_addr).
constexpr uintptr_t kLowest = 4096;

bool is_near(const void* frame, const void* memory, size_t size) {
  const uintptr_t distance =
      reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(frame);
  return distance < kNear && size <= kNear - distance;
}

// `named`: which of the two is the program's; `by_kernel` copies to or from there.
int copy(void* to, const void* from, size_t size, const void* named,
         long (*by_kernel)(void*, const void*, size_t)) {
  if (size == 0) return 0;
  if (!is_near(__builtin_frame_address(0), named, size)) {
    const long copied = by_kernel(to, from, size);
    if (copied == static_cast<long>(size)) return 0;
    if (copied >= 0 || copied == -EFAULT) return EFAULT;
    // The process may not ask (seccomp profiles of older containers, qemu-user).
    if (reinterpret_cast<uintptr_t>(named) < kLowest) return EFAULT;
  }
  std::memcpy(to, from, size);
  return 0;
}

}  // namespace

int copy_in(void* to, const void* from, size_t size) {
  return copy(to, from, size, from, raw::read_own_memory);
}

int copy_out(void* to, const void* from, size_t size) {
  return copy(to, from, size, to, raw::write_own_memory);
}

}  // namespace uiw::vkernel
