// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory behind whose end there is none.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace uiw::vkernel::test {

class MemoryEnd {
 public:
  MemoryEnd()
      : start_(static_cast<uint8_t*>(
            mmap(nullptr, 2 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_EQ(mprotect(start_ + kSize, kSize, PROT_NONE), 0);
  }
  ~MemoryEnd() { munmap(start_, 2 * kSize); }
  MemoryEnd(const MemoryEnd&) = delete;
  MemoryEnd& operator=(const MemoryEnd&) = delete;

  uint8_t* end() const { return start_ + kSize; }

 private:
  static constexpr size_t kSize = 64 * 1024;  // of a page at most
  uint8_t* const start_;
};

}  // namespace uiw::vkernel::test
