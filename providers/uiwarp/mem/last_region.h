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
    if (last_ && last_->is_live(stag)) return Found(&*last_);
    return look_up(table, stag);
  }
  // Of an SGE: a memory window has no local key. Null when there is none.
  const Region* find_local(const Table& table, uint32_t lkey) {
    if (last_ && last_->is_live(lkey)) return &*last_;
    return look_up(table, lkey) && last_ && last_->is_live(lkey) ? &*last_ : nullptr;
  }
  void release() { last_.reset(); }

 private:
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
