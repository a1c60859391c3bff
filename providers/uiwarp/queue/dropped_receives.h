// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Receives of a shared queue that end with a queue pair, without a completion that anybody polls.
// Only the stack knows which those are; instruments that keep lists of what is posted are told.
#pragma once

#include <cstdint>
#include <memory>

#include "queue/completion_queue.h"

namespace uiw::queue {

class DroppedReceives {
 public:
  // Purges the receives of a queue pair. Remembers which were dropped if they are of a shared queue
  // and there is an instrument. `begun`: null, or the wr_id of a receive of which part of a message
  // has arrived. Thread: as CompletionQueue::purge().
  static DroppedReceives purge(CompletionQueue& cq, std::unique_ptr<CompletionSource> source,
                               const uint64_t* begun = nullptr);

  // Tells the instruments. Thread: any, with no lock held that a call of an instrument may take.
  void tell(uint32_t qp_num) const;

 private:
  std::unique_ptr<uint64_t[]> wr_ids_;
  uint32_t count_ = 0;
};

}  // namespace uiw::queue
