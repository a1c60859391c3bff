// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Zeroed memory from the kernel that can be given back and stays readable: afterwards readers see
// zeros (madvise(2), MADV_DONTNEED). So it suits data that is read without a lock.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace uiw::mem {

class ZeroedPages {
 public:
  ZeroedPages() = default;
  ZeroedPages(const ZeroedPages&) = delete;
  ZeroedPages& operator=(const ZeroedPages&) = delete;
  ~ZeroedPages() {
    if (start_) munmap(start_, size_);
  }

  // Call it once. False: out of memory.
  bool map(size_t size) {
    void* const start =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return false;
    start_ = static_cast<std::byte*>(start);
    size_ = size;
    return true;
  }
  // Gives back `size` bytes from `offset` on, both multiples of the page size. False: the kernel
  // refuses (mlockall), and the bytes are unchanged.
  bool give_back(size_t offset, size_t size) {
    return madvise(start_ + offset, size, MADV_DONTNEED) == 0;
  }

  explicit operator bool() const { return start_; }
  std::byte* start() const { return start_; }
  size_t size() const { return size_; }

 private:
  std::byte* start_ = nullptr;
  size_t size_ = 0;
};

}  // namespace uiw::mem
