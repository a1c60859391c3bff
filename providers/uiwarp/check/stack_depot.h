// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Backtraces, each different one once and for good: a program posts from few places, and whoever
// remembers one has a number of it only. There is room for so many. Allocates nothing and takes no
// lock: allocators ask, too (check/unmapping.h), and a fork may come at any time, after which the
// child has what there was.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "check/backtrace.h"

namespace uiw::check {

// Zeroed memory is an empty one. Thread: any.
class StackDepot {
 public:
  static constexpr uint32_t kMost = 1 << 15;  // 3.5 MiB, as far as they are used

  // The number of one that is equal, from 1 on. 0: it is a new one, and there is no room.
  uint32_t number_of(const Backtrace& stack);
  // Of a number that number_of() gave.
  const Backtrace& at(uint32_t number) const { return stacks_[number - 1]; }

 private:
  static constexpr uint32_t kSlots = 2 * kMost;
  uint32_t put(const Backtrace& stack);

  std::atomic<uint32_t> count_{0};                     // of stacks_, so far
  std::array<std::atomic<uint64_t>, kSlots> slots_{};  // a hash, and the number below; 0: free
  std::array<Backtrace, kMost> stacks_{};
};

}  // namespace uiw::check
