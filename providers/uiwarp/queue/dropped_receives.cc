// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/dropped_receives.h"

#include <new>
#include <utility>

#include "core/instrumented.h"
#include "core/tell_dropped.h"

namespace uiw::queue {

DroppedReceives DroppedReceives::purge(CompletionQueue& cq,
                                       std::unique_ptr<CompletionSource> source,
                                       const uint64_t* begun) {
  DroppedReceives dropped;
  // No more than wait now: it produces nothing any more.
  if (source->is_of_shared_queue() && core::instrumented.load(std::memory_order_acquire))
    dropped.wr_ids_.reset(new (std::nothrow) uint64_t[size_t{cq.waiting_of(*source)} + 1]);
  uint64_t* const wr_ids = dropped.wr_ids_.get();
  const uint32_t waiting = cq.purge(std::move(source), wr_ids);
  if (!wr_ids) return dropped;
  dropped.count_ = waiting;
  if (begun) wr_ids[dropped.count_++] = *begun;
  return dropped;
}

void DroppedReceives::tell(uint32_t qp_num) const {
  core::tell_dropped(qp_num, {wr_ids_.get(), count_});
}

}  // namespace uiw::queue
