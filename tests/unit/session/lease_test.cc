// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whoever busy-polls receives: whatever happens to the connection meanwhile, and when the polls
// cease.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "unit/session/leased.h"

namespace uiw::test {
namespace {

// This thread and the engine share a CPU, so the engine, which sleeps most of the time, comes
// first.
class SharedCpu {
 public:
  explicit SharedCpu(engine::Engine& engine) {
    EXPECT_EQ(sched_getaffinity(0, sizeof all_, &all_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    const auto share = [&] { EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0); };
    share();
    engine.run_sync(share);
  }
  ~SharedCpu() { sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_;
};

TEST_F(Leased, WhoPollsReceives) {
  start_lent();
  for (const ibv_wc& wc : received) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, static_cast<uint64_t>(&wc - received.data()));
  }
}

// There is no time to poll between the pieces of a message: the engine takes each at once.
TEST_F(Leased, WhoPollsReceivesMessagesInPieces) {
  const SharedCpu shared(*engine);
  start();
  EXPECT_TRUE(wait_until([&] {
    EXPECT_EQ(host->receive(RecvWr({}, msn)), 0);
    for (int i = 0; i < 100; ++i) poll();
    const uint64_t before = receives();
    const Octets octets = next_send();
    EXPECT_TRUE(peer->send(std::span(octets).first(7)));
    const bool lent = !engine_receives(before);
    EXPECT_TRUE(peer->send(std::span(octets).subspan(7)));
    if (!lent) engine_receives(before + 1);
    do {
      poll();
    } while (received.size() < msn);
    return (lent && receives() == before) || HasFailure();
  }));
}

// Their completions are polled, but what comes has none: somebody looks at memory.
TEST_F(Leased, WhoOnlyPollsForItsOwnSendsDoesNotReceive) {
  start();
  Buffer target(host->memory, 8);
  for (int round = 0; round < 300; ++round) {
    const uint64_t before = receives();
    ASSERT_EQ(host->post(SendWr(IBV_WR_RDMA_WRITE)), 0);
    ASSERT_TRUE(peer->send(fpdu(tagged(0, target.stag(), target.start(), of_text("octets..")))));
    ASSERT_TRUE(wait_until([&] { return receives() > before; }));
    ibv_wc wc;
    host->send_cq->poll(1, &wc);
  }
}

TEST_F(Leased, TheEngineReceivesWhenPollsCease) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    Buffer target(host->memory, 8);
    ASSERT_TRUE(peer->send(fpdu(tagged(0, target.stag(), target.start(), of_text("octets..")))));
    peer->finish();
    ASSERT_TRUE(host->wait_for_end());  // polls nothing
    EXPECT_TRUE(target.content() == of_text("octets.."));
  }
}

TEST_F(Leased, ArmingTheQueueGivesItToTheEngine) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    const int before = signals.count.load();
    host->recv_cq->arm(false);
    ASSERT_EQ(host->receive(RecvWr()), 0);
    ASSERT_TRUE(peer->send(next_send()));
    EXPECT_TRUE(wait_until([&] { return signals.count.load() == before + 1; }));  // polls nothing
    poll();
    EXPECT_EQ(received.size(), msn);
  }
}

TEST_F(Leased, AnEndIsFoundByWhoPolls) {
  for (bool reset : {false, true, false, true}) {
    SCOPED_TRACE(reset);
    start_lent();
    ASSERT_EQ(host->receive(RecvWr({}, 99)), 0);
    if (reset) {
      peer->reset();
    } else {
      peer->finish();
    }
    ASSERT_TRUE(wait_until([&] { return poll(), host->ended(); }));
    poll();
    EXPECT_EQ(host->end_error(), reset ? ECONNRESET : 0);
    EXPECT_EQ(host->events(),
              reset ? std::vector{IBV_EVENT_QP_FATAL} : std::vector<ibv_event_type>{});
    ASSERT_FALSE(received.empty());
    EXPECT_EQ(received.back().wr_id, 99u);
    EXPECT_EQ(received.back().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(host->state(), IBV_QPS_ERR);
  }
}

TEST_F(Leased, AFaultIsFoundByWhoPolls) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    Octets damaged = next_send();
    damaged[10] ^= 1;
    ASSERT_TRUE(peer->send(concat(damaged, next_send())));
    // The poller stays at it while the engine deals with the fault.
    std::atomic<bool> over{false};
    std::thread spinner([&] {
      ibv_wc wc;
      while (!over) host->recv_cq->poll(1, &wc);
    });
    const std::vector<Octets> said = ulpdus_of(peer->receive_all());
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(said[0][1] & 0xf, 7);  // Terminate
    peer->finish();
    EXPECT_TRUE(host->wait_for_end());
    over = true;
    spinner.join();
    EXPECT_EQ(host->end_error(), EPROTO);
    EXPECT_EQ(host->events(), std::vector{IBV_EVENT_QP_FATAL});
  }
}

// Two threads poll; the queue pair changes state or goes away below them.
TEST_F(Leased, EndsBelowThosePolling) {
  for (int round = 0; round < 2; ++round) {
    for (Host::Ending how : Host::kEndings) {
      SCOPED_TRACE(static_cast<int>(how));
      start_lent();
      const Spinners spinners(*host->recv_cq);
      for (int i = 0; i < 50; ++i) ASSERT_EQ(host->receive(RecvWr({}, 1)), 0);
      for (int i = 0; i < 50; ++i) peer->send(next_send());
      host->end_by(how);
      peer->receive_all();
      peer->finish();
      if (Host::is_told(how)) EXPECT_TRUE(host->wait_for_end());
      host->destroy();
    }
  }
}

TEST_F(Leased, ASendWaitsForItsReceive) {
  for (int round = 0; round < 5; ++round) {
    start_lent();
    const Octets first = next_send();
    ASSERT_TRUE(peer->send(concat(first, next_send())));
    for (int i = 0; i < 1000; ++i) poll();  // whoever receives it finds no receive
    ASSERT_EQ(host->receive(RecvWr({}, 1)), 0);
    ASSERT_EQ(host->receive(RecvWr({}, 2)), 0);
    ASSERT_TRUE(wait_until([&] { return poll(), received.size() == msn; }));
    EXPECT_EQ(received.back().wr_id, 2u);
    EXPECT_EQ(received.back().status, IBV_WC_SUCCESS);
    EXPECT_FALSE(host->ended());
  }
}

}  // namespace
}  // namespace uiw::test
