// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The callbacks by which queue pairs of any type report asynchronous events.
#pragma once

#include <infiniband/verbs.h>

namespace uiw::queue {

// Async events about a QP (IBV_EVENT_QP_FATAL, ...). Thread: any.
class QueuePairEvents {
 public:
  virtual void on_async_event(ibv_event_type type) = 0;

 protected:
  ~QueuePairEvents() = default;
};

// IBV_EVENT_SRQ_LIMIT_REACHED. Thread: any.
class SrqEvents {
 public:
  virtual void on_srq_limit() = 0;

 protected:
  ~SrqEvents() = default;
};

}  // namespace uiw::queue
