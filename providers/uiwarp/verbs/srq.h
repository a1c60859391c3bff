// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A shared receive queue and where its limit event goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "queue/receive_queue.h"
#include "session/queue_pair.h"
#include "verbs/pd.h"

struct uiwarp_srq final : uiw::queue::SrqEvents {
  uiwarp_pd* pd = nullptr;
  std::unique_ptr<uiw::queue::ReceiveQueue> queue;
  uiw::verbs::EventSource events;  // named as the ibv_srq
  uiw::verbs::Users users;         // queue pairs
  std::atomic<uint32_t> async_events{0};
  uiw::core::Told told;

  void on_srq_limit() override;
};
