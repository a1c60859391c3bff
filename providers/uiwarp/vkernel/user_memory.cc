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

// Of what the kernel has copied of `size` bytes; kAsk: it would not.
constexpr int kAsk = -1;
int outcome(long copied, size_t size) {
  if (copied == static_cast<long>(size)) return 0;
  return copied >= 0 || copied == -EFAULT ? EFAULT : kAsk;
}

// Where the process may not ask the kernel (seccomp profiles of older containers, qemu-user).
int copy_anyway(void* to, const void* from, size_t size, const void* named) {
  if (reinterpret_cast<uintptr_t>(named) < kLowest) return EFAULT;
  std::memcpy(to, from, size);
  return 0;
}

}  // namespace

int copy_in(void* to, const void* from, size_t size) {
  if (size == 0) return 0;
  if (is_near(__builtin_frame_address(0), from, size)) {
    std::memcpy(to, from, size);
    return 0;
  }
  const int result = outcome(raw::read_own_memory(to, from, size), size);
  return result != kAsk ? result : copy_anyway(to, from, size, from);
}

int copy_out(void* to, const void* from, size_t size) {
  if (size == 0) return 0;
  if (is_near(__builtin_frame_address(0), to, size)) {
    std::memcpy(to, from, size);
    return 0;
  }
  const int result = outcome(raw::write_own_memory(to, from, size), size);
  return result != kAsk ? result : copy_anyway(to, from, size, to);
}

}  // namespace uiw::vkernel
