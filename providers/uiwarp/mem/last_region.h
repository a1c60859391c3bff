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
  // As Table::find(). The result is to be gone before release().
  RegionRef find(const Table& table, uint32_t stag) {
    if (last_ && last_->is_live(stag)) return borrow();
    RegionRef found = table.find(stag);
    // A window is kept by nobody for longer than a copy: Table::invalidate().
    if (!found || found->is_window()) return found;
    last_ = std::move(found);
    return borrow();
  }
  void release() { last_.reset(); }

 private:
  RegionRef borrow() { return RegionRef(last_.region_, true); }
  RegionRef last_;
};

}  // namespace uiw::mem
