// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Finds the regions of many consecutive segments or work requests, which mostly name the same one.
// Only the first of a run counts a reference. Counting is slow by itself, and its locked
// instruction also waits until all earlier stores are in the cache, including the payload placed
// last.
#pragma once

#include <utility>

#include "mem/table.h"

namespace uiw::mem {

// Thread: one at a time. Deregistration of the region waits between the first find() and release().
// So keep that time short, and wait for nothing in it.
class LastRegion {
 public:
  explicit LastRegion(Side side) : side_(side) {}

  // The result, valid until the next find() or release().
  class Found {
   public:
    Found() = default;
    explicit operator bool() const { return region_; }
    const Region* operator->() const { return region_; }
    const Region& operator*() const { return *region_; }

   private:
    friend class LastRegion;
    explicit Found(const Region* region) : region_(region) {}
    explicit Found(RegionRef&& window) : region_(&*window), window_(std::move(window)) {}
    const Region* region_ = nullptr;
    RegionRef window_;  // held here only, as Table::invalidate() waits for it: for one copy at most
  };

  // As Table::find().
  Found find(const Table& table, uint32_t stag) {
    return is_last(stag) ? Found(&*last_) : look_up(table, stag);
  }
  // The address in this process of the `length` bytes of an SGE from `address` on. Null when there
  // is no such region (a memory window has no local key) or check() finds a fault.
  uint8_t* locate(const Table& table, uint32_t lkey, uint32_t pd, uint64_t address, uint64_t length,
                  uint32_t needed) {
    if (!is_last(lkey)) look_up(table, lkey);
    if (!is_last(lkey) || check(*last_, pd, address, length, needed) != Fault::kNone)
      return nullptr;
    return last_->memory + (address - last_->start);
  }
  void release() { last_.reset(); }

 private:
  bool is_last(uint32_t stag) const { return last_ && last_->is_live(stag); }
  [[gnu::noinline]] Found look_up(const Table& table, uint32_t stag) {
    RegionRef found = table.find(stag, side_);
    if (!found) return {};
    if (found->is_window()) return Found(std::move(found));
    last_ = std::move(found);
    return Found(&*last_);
  }

  const Side side_;
  RegionRef last_;
};

}  // namespace uiw::mem
