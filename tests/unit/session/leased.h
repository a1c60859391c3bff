// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair whose peer sends what the test says, until pollers receive.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <memory>
#include <vector>

#include "support/host.h"

namespace uiw::test {

class Signals final : public queue::CompletionEvents {
 public:
  void on_completion_event() override { count.fetch_add(1); }
  void on_overflow() override {}
  std::atomic<int> count{0};
};

class Leased : public testing::Test {
 protected:
  void start() {
    host.reset();
    const SocketEnds ends = connect_sockets();
    peer = std::make_unique<RawPeer>(ends.theirs);
    host = std::make_unique<Host>(*engine, HostOptions{.cq_events = &signals});
    ASSERT_EQ(host->attach(ends.ours), 0);
    msn = 0;
    received.clear();
  }
  Octets next_send(const Octets& payload = {}) { return fpdu(untagged(3, 0, ++msn, 0, payload)); }
  // One Send of the peer, for which the queue is polled in vain often before it comes.
  void exchange() {
    ASSERT_EQ(host->receive(RecvWr({}, msn)), 0);
    for (int i = 0; i < 100; ++i) poll();
    ASSERT_TRUE(peer->send(next_send()));
    ASSERT_TRUE(wait_until([&] { return poll(), received.size() == msn; }));
  }
  void poll() {
    ibv_wc wc;
    while (host->recv_cq->poll(1, &wc) == 1) received.push_back(wc);
  }
  // Until a message comes without the engine. Its own pace decides when it looks, hence the loop.
  void start_lent() {
    start();
    ASSERT_TRUE(wait_until([&] {
      const uint64_t before = receives();
      exchange();
      return receives() == before || HasFatalFailure();
    }));
  }
  uint64_t receives() { return engine->counters().receives.load(); }
  // Lets it: false when it does not, because the queue pair is lent. Sharing a CPU it comes with
  // the first of these; all of them must take less than the millisecond after which it notices that
  // nobody polls.
  bool engine_receives(uint64_t before) {
    for (int i = 0; i < 16 && receives() == before; ++i) sched_yield();
    return receives() != before;
  }

  Signals signals;
  std::unique_ptr<engine::Engine> engine{std::move(*engine::Engine::start())};
  std::unique_ptr<Host> host;
  std::unique_ptr<RawPeer> peer;
  uint32_t msn = 0;
  std::vector<ibv_wc> received;
};

}  // namespace uiw::test
