// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs in the simulator whose test says to what time things happen.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "sim/behaviour.h"
#include "sim/queue_pair_end.h"
#include "sim/sim_engine.h"
#include "sim/sim_kernel.h"

namespace uiw::test {

class PlainEnd final : public QueuePairEnd {
 public:
  using QueuePairEnd::QueuePairEnd;
  void reset_connection() override { Kernel::current().reset(fd_); }
  void half_close() override { Kernel::current().half_close(fd_); }
  session::QueuePair& qp() { return *qp_; }
  const session::State& state() { return session::InsideQueuePair::state(*qp_); }
  int modify(ibv_qp_state to) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    return qp_->modify(attr, IBV_QP_STATE);
  }
};

class VirtualTime : public testing::TestWithParam<uint32_t> {
 protected:
  // Lets everything happen until `until`; time jumps to the next deadline before that.
  void run(core::Nanoseconds until) {
    while (kernel.now() < until) {
      kernel.pass(core::kMicrosecond);
      if (take_turn(*engine)) continue;
      const core::Nanoseconds next = std::min(kernel.next_timer(), next_deadline(*engine));
      kernel.advance_to(std::min(next, until));
    }
  }

  // Takes what comes to `peer` until nothing has for a while.
  Octets take_all(int peer) {
    Octets all, part(10000);
    const iovec room{part.data(), part.size()};
    for (int quiet = 0; quiet < 20; ++quiet, run(kernel.now() + core::kMillisecond))
      for (long got; (got = kernel.receive(peer, {&room, 1})) > 0; quiet = 0)
        all.insert(all.end(), part.begin(), part.begin() + got);
    return all;
  }
  // The same: how many of its bytes are `value`.
  long drain(int peer, uint8_t value = 0) {
    const Octets all = take_all(peer);
    return std::count(all.begin(), all.end(), value);
  }
  void send_all(int peer, Octets bytes) {
    for (size_t sent = 0; sent < bytes.size(); run(kernel.now() + core::kMicrosecond)) {
      const iovec rest{bytes.data() + sent, bytes.size() - sent};
      sent += static_cast<size_t>(std::max(kernel.send(peer, {&rest, 1}), 0L));
    }
  }

  // Both ends of a connection, each with a memory of its own.
  struct Pair {
    Pair(VirtualTime& test, size_t window, const EndOptions& first, const EndOptions& second)
        : sockets(test.kernel.connect(window)),
          one(*test.engine, *test.engine, test.memory, 100, first),
          other(*test.engine, *test.engine, other_memory, 101, second) {}
    void expect_each_other() {
      for (PlainEnd* end : {&one, &other}) {
        EXPECT_EQ(end->qp().expect_peer(), 0);
        EXPECT_EQ(end->modify(IBV_QPS_RTS), 0);
      }
    }
    void attach(bool one_initiates = true) {
      other.attach(sockets.second, agreement_of(other.options, !one_initiates));
      one.attach(sockets.first, agreement_of(one.options, one_initiates));
    }
    void destroy() {
      one.destroy();
      other.destroy();
    }

    mem::Table other_memory;
    const std::pair<int, int> sockets;
    PlainEnd one, other;
  };

  Kernel kernel{GetParam()};
  std::unique_ptr<engine::Engine> engine = std::move(*engine::Engine::start());
  mem::Table memory;
  static constexpr core::Nanoseconds kCloseTimeout = 60 * core::kSecond;  // main.cc
};

}  // namespace uiw::test
