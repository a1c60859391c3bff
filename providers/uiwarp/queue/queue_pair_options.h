// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The parameters with which a queue pair of any type is created.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "counters/slot.h"
#include "mem/table.h"
#include "queue/async_events.h"
#include "queue/completion_queue.h"
#include "queue/receive_queue.h"

namespace uiw::queue {

struct QueuePairOptions {
  uint32_t qp_num = 0;
  uint32_t pd = 0;
  uint32_t srq_pd = 0;
  mem::Table* memory = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  ReceiveQueue* srq = nullptr;  // null: own receive queue
  QueuePairEvents* events = nullptr;
  SrqEvents* srq_events = nullptr;
  ibv_qp_cap cap{};  // already checked against the device limits
  bool signal_all = false;
  counters::Slot* counters = &counters::g_nowhere;  // outlives the queue pair
};

}  // namespace uiw::queue
