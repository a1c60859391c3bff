// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A shared receive queue and the destination of its limit event.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "counters/file.h"
#include "queue/receive_queue.h"
#include "session/queue_pair.h"
#include "verbs/pd.h"

struct uiwarp_srq final : uiw::queue::SrqEvents {
  explicit uiwarp_srq(uiwarp_pd& of)
      : pd(&of), counters(uiw::counters::Kind::kSharedReceiveQueue, of.context->device->name, 0) {}

  uiwarp_pd* pd;
  uiw::counters::Lent counters;  // declared before the queue that counts in it
  std::unique_ptr<uiw::queue::ReceiveQueue> queue;
  uiw::verbs::EventSource events;  // carries the ibv_srq
  uiw::verbs::Users users;         // queue pairs
  std::atomic<uint32_t> async_events{0};
  uiw::core::Told told;

  void on_srq_limit() override;
};
