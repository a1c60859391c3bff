// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Numbered slots for data that readers access without a lock. Their memory is given back, but an
// address that was valid stays readable: a late reader may access a slot that is free, or reused,
// by now. Late readers write only reference counts. These are kept apart from the slots and are
// never given back: 8 bytes for each slot that ever existed.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "core/pages.h"
#include "mem/holding.h"
#include "mem/zeroed_pages.h"

namespace uiw::mem {

// A free Slot must be all zeros. take() sets its `number` and `counts`: counts[0] and
// counts[kOtherCount], each in a cache line of its own. Thread: one at a time.
template <typename Slot>
class Slots {
 public:
  static constexpr uint32_t kPerPage = core::kPage / sizeof(Slot);
  static constexpr uint32_t kPages = 16;  // per group
  static constexpr uint32_t kPerGroup = kPerPage * kPages;
  static constexpr uint32_t kGroups = 2048;
  static constexpr uint32_t kMost = kGroups * kPerGroup;
  static constexpr size_t kOtherCount = kPerGroup;

  // Takes the lowest free slot, so that the memory of higher ones can be given back. Null: out of
  // memory, or all are taken.
  Slot* take() {
    uint32_t word = 0;
    while (word < kGroups / 64 && !~full_[word]) ++word;
    if (word == kGroups / 64) return nullptr;
    const uint32_t at = word * 64 + static_cast<uint32_t>(std::countr_one(full_[word]));
    if (!groups_[at] && !add_group(at)) return nullptr;
    Group& group = *groups_[at];
    uint32_t page = 0;
    while (!~group.taken[page]) ++page;
    const uint32_t bit = static_cast<uint32_t>(std::countr_one(group.taken[page]));
    group.taken[page] |= uint64_t{1} << bit;
    if (!group.touched[page]) {
      group.touched[page] = true;
      ++touched_;
    }
    if (std::ranges::all_of(group.taken, [](uint64_t taken) { return !~taken; }))
      full_[word] |= uint64_t{1} << at % 64;
    ++taken_;
    Slot* const slot = group.slots() + page * kPerPage + bit;
    slot->number = at * kPerGroup + page * kPerPage + bit;
    // The slots of a page count in 64 lines of each kind, which they share with slots of other
    // pages.
    slot->counts.store(group.counts() + bit * kPages + page, std::memory_order_relaxed);
    return slot;
  }

  void give(const Slot& slot) {
    const uint32_t at = slot.number / kPerGroup, place = slot.number % kPerGroup;
    groups_[at]->taken[place / kPerPage] &= ~(uint64_t{1} << place % kPerPage);
    full_[at / 64] &= ~(uint64_t{1} << at % 64);
    --taken_;
  }

  // Gives back the pages without a taken slot, consecutive ones together.
  void trim() {
    for (const std::unique_ptr<Group>& group : groups_) {
      for (uint32_t page = 0; group && page < kPages; ++page) {
        const uint32_t first = page;
        while (page < kPages && group->touched[page] && !group->taken[page]) ++page;
        if (page == first ||
            !group->memory.give_back(first * core::kPage, (page - first) * core::kPage))
          continue;
        touched_ -= page - first;
        std::fill(group->touched + first, group->touched + page, false);
      }
    }
  }

  uint32_t taken() const { return taken_; }
  // Bytes in use: those that trim() could give back if no slot were taken, and those that it never
  // gives back.
  size_t slots_footprint() const { return touched_ * core::kPage; }
  size_t counts_footprint() const { return groups_in_use_ * kCountsSize; }

 private:
  static_assert(sizeof(Slot) * 64 == core::kPage);  // each has a bit of `taken` and its own cache
                                                    // line
  static constexpr size_t kSlotsSize = kPerGroup * sizeof(Slot);
  static constexpr size_t kCountsSize = 2 * kPerGroup * sizeof(RefCount);

  struct Group {
    ZeroedPages memory;  // the slots, then their first counts, then their second
    uint64_t taken[kPages] = {};
    bool touched[kPages] = {};

    Slot* slots() const { return reinterpret_cast<Slot*>(memory.start()); }
    RefCount* counts() const { return reinterpret_cast<RefCount*>(memory.start() + kSlotsSize); }
  };

  bool add_group(uint32_t at) {
    std::unique_ptr<Group> group(new (std::nothrow) Group);
    if (!group || !group->memory.map(kSlotsSize + kCountsSize)) return false;
    groups_[at] = std::move(group);
    ++groups_in_use_;
    return true;
  }

  std::unique_ptr<Group> groups_[kGroups];
  uint64_t full_[kGroups / 64] = {};  // a bit for each group without a free slot
  uint32_t taken_ = 0;
  size_t touched_ = 0;  // pages that may have memory
  size_t groups_in_use_ = 0;
};

}  // namespace uiw::mem
