// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Many threads at one connection, over TCP.
#include <atomic>
#include <thread>

#include "sim/media.h"
#include "support/window.h"

namespace uiw::test {
namespace {

class Threads : public Behaviour {};

// Every poster's work requests stay in its order, all complete once, nothing is lost on the way
// between posters and engine.
TEST_P(Threads, SeveralPostAndSeveralPoll) {
  constexpr uint64_t kPosters = 3, kEach = 2000, kReceives = kPosters * kEach;
  connect({.depth = 16}, {.receives = kReceives});
  Buffer octets(a->memory, pattern(64)), to(b->memory, 64), target(b->memory, 4096);
  for (uint64_t i = 0; i < kReceives; ++i) ASSERT_EQ(b->receive(RecvWr({to.sge()}, i)), 0);

  std::atomic<uint64_t> completed{0};
  std::atomic<bool> bad{false};
  std::vector<std::vector<uint64_t>> seen(2);
  std::vector<std::thread> threads;
  for (uint64_t p = 0; p < kPosters; ++p) {
    threads.emplace_back([&, p] {
      for (uint64_t i = 0; i < kEach;) {
        SendWr wr(IBV_WR_SEND, {octets.sge()}, p * kEach + i);
        const int result = a->post(wr);
        if (result == 0) {
          ++i;
        } else if (result != ENOMEM) {
          bad = true;
          return;
        }
      }
    });
  }
  for (auto& mine : seen) {
    threads.emplace_back([&] {
      ibv_wc wc[4];
      while (completed < kReceives && !bad) {
        const int count = a->send_cq->poll(4, wc);
        for (int i = 0; i < count; ++i) {
          if (wc[i].status != IBV_WC_SUCCESS) bad = true;
          mine.push_back(wc[i].wr_id);
        }
        completed += static_cast<uint64_t>(count);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_FALSE(bad);
  std::vector<bool> once(kReceives, false);
  for (const auto& mine : seen) {
    uint64_t next[kPosters] = {};
    for (uint64_t id : mine) {
      ASSERT_FALSE(once[id]);
      once[id] = true;
      ASSERT_GE(id % kEach + 1, next[id / kEach]);
      next[id / kEach] = id % kEach + 1;
    }
  }
  ASSERT_REACHED(b->received_count() == kReceives);
  expect_in_order(b->received());
}

// The lone message in both directions, many times: whoever loses a wake-up hangs here.
TEST_P(Threads, PingPongLosesNoWakeup) {
  constexpr uint64_t kRounds = 3000;
  connect();
  // Sent from one buffer and received into another: that TCP orders the two is hidden from
  // ThreadSanitizer.
  Buffer one(a->memory, pattern(32)), other(b->memory, pattern(32));
  Buffer one_in(a->memory, 32), other_in(b->memory, 32);
  const auto play = [](End& me, Buffer& octets, Buffer& sink, bool serves) {
    uint64_t sent = 0;
    for (uint64_t round = 0; round < kRounds; ++round) {
      ibv_wc wc;
      if (me.receive(RecvWr({sink.sge()}, round)) != 0) return false;
      if (serves && me.post(SendWr(IBV_WR_SEND, {octets.sge()}, sent++)) != 0) return false;
      while (me.recv_cq->poll(1, &wc) == 0) std::this_thread::yield();
      if (wc.status != IBV_WC_SUCCESS || wc.wr_id != round) return false;
      if (!serves && me.post(SendWr(IBV_WR_SEND, {octets.sge()}, sent++)) != 0) return false;
      while (me.send_cq->poll(1, &wc) == 0) std::this_thread::yield();
      if (wc.status != IBV_WC_SUCCESS) return false;
    }
    return true;
  };
  bool first = false, second = false;
  std::thread partner([&] { second = play(*b, other, other_in, false); });
  first = play(*a, one, one_in, true);
  partner.join();
  EXPECT_TRUE(first && second);
}

// Whoever sees an answer sees the completion of what it answers, though another thread sent that
// and may have lost its CPU since.
TEST_P(Threads, AnAnswerIsCompletedAfterWhatItAnswers) {
  constexpr uint64_t kRounds = 300, kAhead = 4;
  connect({.depth = 16, .receives = kRounds}, {.depth = 16, .receives = kRounds});
  for (uint64_t round = 0; round < kRounds; ++round) {
    ASSERT_EQ(a->receive(RecvWr({}, round)), 0);
    ASSERT_EQ(b->receive(RecvWr({}, round)), 0);
  }
  const auto take = [](queue::CompletionQueue& cq, ibv_wc* wc) {
    while (cq.poll(1, wc) == 0) std::this_thread::yield();
  };
  std::atomic<uint64_t> answered{0};
  std::thread answers([&] {
    ibv_wc wc;
    for (uint64_t round = 0; round < kRounds; ++round) {
      take(*b->recv_cq, &wc);
      EXPECT_EQ(b->post(SendWr(IBV_WR_SEND, {}, round)), 0);
      take(*b->send_cq, &wc);
    }
  });
  std::thread asks([&] {
    for (uint64_t round = 0; round < kRounds; ++round) {
      while (round >= answered + kAhead) std::this_thread::yield();
      EXPECT_EQ(a->post(SendWr(IBV_WR_SEND, {}, round)), 0);
    }
  });
  uint64_t sent = 0, too_early = 0;
  while (answered < kRounds) {
    ibv_wc wc[kAhead + 1];
    take(*a->recv_cq, wc);
    sent += static_cast<uint64_t>(a->send_cq->poll(kAhead + 1, wc));
    if (sent <= answered) ++too_early;
    ++answered;
  }
  EXPECT_EQ(too_early, 0u);
  answers.join();
  asks.join();
}

// SE-06: when deregistration has returned nothing is written any more, whatever is on its way.
TEST_P(Threads, NothingIsWrittenAfterDeregistration) {
  constexpr size_t kSize = 256 * 1024;
  for (int round = 0; round < 20; ++round) {
    connect();
    Buffer octets(a->memory, Octets(kSize, 0xee)), target(b->memory, kSize);
    for (uint64_t i = 0; i < 32; ++i)
      ASSERT_EQ(
          a->post(SendWr(IBV_WR_RDMA_WRITE, {octets.sge()}, i).to(target.start(), target.stag())),
          0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 32)),
              0);  // completes or fails behind all of them
    for (int i = 0; i < round * 20; ++i) std::this_thread::yield();
    target.deregister();
    const Octets after = target.content();
    ASSERT_REACHED(a->sent_count() == 33);
    ASSERT_TRUE(target.content() == after);
    a->destroy();
    b->destroy();
  }
}

// The same for memory windows, whichever way they end.
TEST_P(Threads, NothingIsWrittenAfterInvalidation) {
  constexpr size_t kSize = 256 * 1024;
  for (int round = 0; round < 20; ++round) {
    connect();
    Buffer octets(a->memory, Octets(kSize, 0xee)), target(b->memory, kSize, kBindable);
    auto window = std::make_unique<Window>(b->memory);
    ASSERT_EQ(b->post(window->bind(target, 0, kSize, mem::kRemoteWrite)), 0);
    ASSERT_REACHED(b->sent_count() == 1);
    const uint32_t stag = window->stag();
    for (uint64_t i = 0; i < 32; ++i)
      ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {octets.sge()}, i).to(target.start(), stag)), 0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 32)),
              0);  // completes or fails behind all of them
    for (int i = 0; i < round * 20; ++i) std::this_thread::yield();
    switch (round % 3) {
      case 0:
        ASSERT_EQ(b->post(invalidating(IBV_WR_LOCAL_INV, stag, {}, 1)), 0);
        ASSERT_REACHED(b->sent_count() == 2);
        break;
      case 1:
        window.reset();
        break;  // ibv_dealloc_mw
      case 2:
        b->destroy();
        break;
    }
    const Octets after = target.content();
    ASSERT_REACHED(a->sent_count() == 33);
    ASSERT_TRUE(target.content() == after);
    a->destroy();
    b->destroy();
  }
}

// The same for what a peer reads: the region goes while its answer is being sent.
TEST_P(Threads, ARegionGoesWhileItIsRead) {
  constexpr size_t kSize = 1 << 20;
  for (int round = 0; round < 20; ++round) {
    connect();
    Buffer sink(a->memory, kSize);
    auto source = std::make_unique<Buffer>(b->memory, pattern(kSize));
    for (uint64_t i = 0; i < 8; ++i)
      ASSERT_EQ(
          a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, i).to(source->start(), source->stag())),
          0);
    for (int i = 0; i < round * 20; ++i) std::this_thread::yield();
    source.reset();
    ASSERT_REACHED(a->sent_count() == 8);
    const std::vector<ibv_wc> done = a->sent();
    expect_in_order(done);
    if (done.back().status == IBV_WC_SUCCESS) {
      EXPECT_FALSE(a->ended());
    } else {
      ASSERT_TRUE(both_ended());
      EXPECT_EQ(a->end_error(), EPROTO);
      EXPECT_EQ(b->async_events(), (std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR}));
    }
    a->destroy();
    b->destroy();
  }
}

// Posts race with the end of the connection: all complete, in order, and the receives too.
TEST_P(Threads, PostsRaceWithTheEnd) {
  for (int round = 0; round < 12; ++round) {
    connect({.depth = 64, .receives = 4000}, {.receives = 4000});
    Buffer octets(a->memory, pattern(3000)), to(b->memory, 3000);
    for (uint64_t i = 0; i < 4000; ++i) ASSERT_EQ(b->receive(RecvWr({to.sge()}, i)), 0);
    std::atomic<uint64_t> sends{0}, receives{0};
    std::atomic<bool> stop{false};
    std::thread sender([&] {
      while (!stop && sends < 1500) {
        if (a->post(SendWr(IBV_WR_SEND, {octets.sge()}, sends)) == 0)
          ++sends;
        else
          a->sent_count();  // what is polled makes room
      }
    });
    std::thread receiver([&] {
      while (!stop && receives < 1500)
        if (a->receive(RecvWr({octets.sge()}, receives)) == 0) ++receives;
    });
    ASSERT_REACHED(sends > 50u + static_cast<unsigned>(round) * 5);
    switch (round % 4) {
      case 0:
        a->disconnect();
        break;
      case 1:
        b->disconnect();
        break;
      case 2:
        a->to_error();
        break;
      case 3:
        b->reset_connection();
        break;
    }
    ASSERT_TRUE(both_ended());
    stop = true;
    sender.join();
    receiver.join();
    ASSERT_REACHED(a->sent_count() == sends && a->received_count() == receives);
    expect_in_order(a->sent());
    expect_in_order(a->received());
    a->destroy();
    b->destroy();
  }
}

}  // namespace

UIWARP_EVERYWHERE(Threads, 0);

}  // namespace uiw::test
