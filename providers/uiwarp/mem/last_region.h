// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Finds the regions of many segments or work requests in a row, which mostly name the same one:
// only the first of a run counts a reference. To count one for each is not only slow by itself: a
// locked instruction waits until all that was stored before it is in the cache, the payload placed
// last.
#pragma once

#include <utility>

#include "mem/table.h"

namespace uiw::mem {

// Thread: one at a time. Between the first find() and release() deregistration of the region waits,
// so that is to be a short time, and nothing in it may wait for others.
class LastRegion {
 public:
  explicit LastRegion(Side side) : side_(side) {}

  // What was found, valid until the next find() or release().
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
    RegionRef window_;  // nobody else holds it: Table::invalidate() waits for one copy, no longer
  };

  // As Table::find().
  Found find(const Table& table, uint32_t stag) {
    return is_last(stag) ? Found(&*last_) : look_up(table, stag);
  }
  // Where the `length` bytes of an SGE from `address` on lie in this process. Null when there is
  // no such region (a memory window has no local key) or check() finds a fault.
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
