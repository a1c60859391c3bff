// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where memory is registered. Whoever unmaps memory asks, an allocator among them: so nothing is
// allocated or freed while its lock is held, and no other lock is taken. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/spinlock.h"

namespace uiw::check {

struct Range {
  uint64_t begin = 0, end = 0;  // of the addresses; the first behind it
  const void* key = nullptr;    // what remove() names
  const void* owner = nullptr;

  bool overlaps(uint64_t from, uint64_t to) const { return begin < to && from < end; }
};

// Thread: any.
class Ranges {
 public:
  void add(const Range& range) {
    std::vector<Range> bigger;
    while (!try_add(range, bigger)) bigger.reserve(2 * bigger.capacity() + 16);
  }
  void remove(const void* key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(ranges_, key, &Range::key);
    if (found == ranges_.end()) return;
    *found = ranges_.back();
    ranges_.pop_back();
  }
  // Owners of ranges with bytes of [begin, end), as many as `owners` has room for; their number.
  size_t find(uint64_t begin, uint64_t end, std::span<const void*> owners) const {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const Range& range : ranges_) {
      if (count == owners.size()) break;
      if (range.overlaps(begin, end)) owners[count++] = range.owner;
    }
    return count;
  }

 private:
  // False: there is no room, in `bigger` neither. It goes, with what it has then, after the lock.
  bool try_add(const Range& range, std::vector<Range>& bigger) {
    const std::lock_guard lock(mutex_);
    if (ranges_.size() == ranges_.capacity()) {
      if (bigger.capacity() <= ranges_.size()) return false;
      bigger.assign(ranges_.begin(), ranges_.end());
      ranges_.swap(bigger);
    }
    ranges_.push_back(range);
    return true;
  }

  mutable core::Spinlock mutex_;
  std::vector<Range> ranges_;
};

}  // namespace uiw::check
