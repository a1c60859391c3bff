// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What connection management needs of queue pairs, which it identifies by number. An interface, so
// that start-up can be tested over real sockets without a protocol machine.
#pragma once

#include <cstdint>

#include "core/bytes.h"
#include "mpa/negotiator.h"
#include "session/queue_pair.h"
#include "transport/tcp_stream.h"

namespace uiw::cm {

using transport::StreamPtr;

// Thread: engine, unless stated otherwise.
class QueuePairs {
 public:
  // Whether there is such a queue pair. Thread: any.
  virtual bool exists(uint32_t qp_num) = 0;
  // session::QueuePair::claim(). EINVAL also when there is no such queue pair. Thread: any.
  virtual int claim(uint32_t qp_num) = 0;
  // session::QueuePair::abandon(). No-op without such a queue pair.
  virtual void abandon(uint32_t qp_num) = 0;
  // session::QueuePair::attach(), to receive later. EINVAL also when there is no such queue pair.
  virtual int attach(uint32_t qp_num, StreamPtr&& stream, const mpa::Agreement& agreement,
                     core::Bytes leftover, session::ConnectionObserver* observer) = 0;
  // session::QueuePair::receive(). No-op without such a queue pair.
  virtual void receive(uint32_t qp_num) = 0;
  // Sets the time limit of RDMA_OPTION_ID_ACK_TIMEOUT with rdma_cm's default number of retries.
  // No-op without such a queue pair.
  virtual void set_ack_timeout(uint32_t qp_num, uint8_t ack_timeout) = 0;
  // session::QueuePair::await_receives(). No-op without such a queue pair.
  virtual void await_receives(uint32_t qp_num, bool for_ever) = 0;
  // session::QueuePair::disconnect(). No-op without such a queue pair.
  virtual void disconnect(uint32_t qp_num) = 0;
  // session::QueuePair::forget_observer(). False without such a queue pair: it is being destroyed,
  // and its observer will be called for that.
  virtual bool forget_observer(uint32_t qp_num) = 0;

 protected:
  ~QueuePairs() = default;
};

// The queue pairs of this process (verbs/registry.h).
QueuePairs& verbs_queue_pairs();

}  // namespace uiw::cm
