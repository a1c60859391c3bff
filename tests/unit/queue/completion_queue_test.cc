// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/completion_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <semaphore>
#include <thread>
#include <vector>

#include "queue/completion_batch.h"

namespace uiw::queue {
namespace {

struct Counted final : CompletionEvents {
  void on_completion_event() override { ++events; }
  void on_overflow() override { ++overflows; }
  void on_spinning() override { ++spinning; }
  int events = 0, overflows = 0, spinning = 0;
};

// Of two queue pairs that nobody asks how much of their work queues is free.
Completion completion(uint64_t wr_id, uint32_t qp_num = 1) {
  static std::atomic<uint64_t> freed;
  static CompletionSource sources[2] = {{CompletionSource::Kind::kOwnQueue, freed},
                                        {CompletionSource::Kind::kOwnQueue, freed}};
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.qp_num = qp_num;
  return {wc, &sources[qp_num], 0};
}

std::vector<uint64_t> drain(CompletionQueue& cq) {
  std::vector<uint64_t> ids;
  ibv_wc wc[3];
  while (int n = cq.poll(3, wc))
    for (int i = 0; i < n; ++i) ids.push_back(wc[i].wr_id);
  return ids;
}

TEST(CompletionQueue, RoundsTheCapacityUp) {
  Counted events;
  EXPECT_EQ(CompletionQueue::create(1, &events)->capacity(), 1u);
  EXPECT_EQ(CompletionQueue::create(5, &events)->capacity(), 8u);
  EXPECT_EQ(CompletionQueue::create(64, &events)->capacity(), 64u);
  EXPECT_EQ(CompletionQueue::create(~0u, &events), nullptr);
}

// Whoever waits is not woken for a queue pair that is about to go.
TEST(CompletionQueue, NoEventIsForAHushedSource) {
  Counted events;
  auto cq = CompletionQueue::create(4, &events);
  std::atomic<uint64_t> freed;
  CompletionSource quiet(CompletionSource::Kind::kOwnQueue, freed),
      other(CompletionSource::Kind::kOwnQueue, freed);
  cq->hush(quiet);
  cq->arm(false);
  cq->wake(&quiet);
  cq->push({ibv_wc{}, &quiet, 0}, true);
  EXPECT_EQ(events.events, 0);
  cq->wake(&other);
  EXPECT_EQ(events.events, 1);
  cq->arm(false);
  cq->push({ibv_wc{}, &other, 0}, false);
  EXPECT_EQ(events.events, 2);
  EXPECT_EQ(drain(*cq).size(), 2u);
}

TEST(CompletionQueue, TellsThatSomebodySpins) {
  Counted events;
  auto cq = CompletionQueue::create(1, &events);
  ibv_wc wc;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cq->poll(1, &wc), 0);
  EXPECT_EQ(events.spinning, 0);
  for (int i = 0; i < 10000; ++i) EXPECT_EQ(cq->poll(1, &wc), 0);
  EXPECT_GE(events.spinning, 5);
  EXPECT_LE(events.spinning, 20);
  events.spinning = 0;
  for (int i = 0; i < 10000; ++i) {
    cq->push(completion(0), false);
    EXPECT_EQ(cq->poll(1, &wc), 1);
  }
  EXPECT_EQ(events.spinning, 0);
}

// A poll that lets others run tells what they completed meanwhile: that the program was
// disconnected may be what it hears next, and then it polls no more.
TEST(CompletionQueue, APollThatYieldedLooksAgain) {
  struct Completing final : CompletionEvents {
    void on_completion_event() override {}
    void on_overflow() override {}
    void on_spinning() override {
      cq->push(completion(0), false);
      ++completed;
    }
    CompletionQueue* cq = nullptr;
    int completed = 0;
  } others;
  auto cq = CompletionQueue::create(1, &others);
  others.cq = cq.get();
  for (int i = 0; i < 10000; ++i) {
    ibv_wc wc;
    const int before = others.completed;
    const int polled = cq->poll(1, &wc);
    ASSERT_EQ(polled, others.completed - before) << "poll " << i;
  }
  EXPECT_GT(others.completed, 0);
}

// The same where another thread made the progress.
TEST(CompletionQueue, APollTellsWhatWasCompletedMeanwhile) {
  struct ByAnother final : Progress {
    explicit ByAnother(CompletionQueue& there) : cq(there) {}
    void progress() override { cq.push(completion(7), false); }
    void on_arm() override {}
    CompletionQueue& cq;
  };
  Counted events;
  auto cq = CompletionQueue::create(1, &events);
  cq->set_progress(std::make_unique<ByAnother>(*cq));
  ibv_wc wc;
  ASSERT_EQ(cq->poll(1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 7u);
}

TEST(CompletionQueue, GivesCompletionsInOrder) {
  Counted events;
  auto cq = CompletionQueue::create(4, &events);
  ibv_wc wc[8];
  EXPECT_EQ(cq->poll(8, wc), 0);
  for (uint64_t round = 0; round < 5; ++round) {  // goes round the ring
    for (uint64_t i = 0; i < 3; ++i) cq->push(completion(round * 3 + i), false);
    EXPECT_EQ(cq->poll(0, wc), 0);
    ASSERT_EQ(cq->poll(2, wc), 2);
    EXPECT_EQ(wc[0].wr_id, round * 3);
    EXPECT_EQ(wc[1].wr_id, round * 3 + 1);
    ASSERT_EQ(cq->poll(8, wc), 1);
    EXPECT_EQ(wc[0].wr_id, round * 3 + 2);
  }
  EXPECT_EQ(events.events, 0);
}

TEST(CompletionQueue, OverflowIsToldOnceAndLosesTheNewest) {
  Counted events;
  auto cq = CompletionQueue::create(2, &events);
  for (uint64_t i = 0; i < 4; ++i) cq->push(completion(i), false);
  EXPECT_TRUE(cq->overflowed());
  EXPECT_EQ(events.overflows, 1);
  EXPECT_EQ(drain(*cq), (std::vector<uint64_t>{0, 1}));
  EXPECT_TRUE(cq->overflowed());
}

// What is polled meanwhile makes room: as much as there was when it was counted is used.
TEST(CompletionQueue, OverflowsWhileSomebodyPolls) {
  Counted events;
  auto cq = CompletionQueue::create(4, &events);
  constexpr uint64_t kBatches = 300'000;
  std::atomic<bool> done{false};
  std::thread poller([&] {
    uint64_t next = 0;
    ibv_wc wc[4];
    for (bool last = false; !last;) {
      last = done;
      const int count = cq->poll(4, wc);
      for (int i = 0; i < count; ++i) {
        ASSERT_GE(wc[i].wr_id, next);
        ASSERT_LT(wc[i].wr_id, 3 * kBatches);
        next = wc[i].wr_id + 1;
      }
    }
  });
  for (uint64_t i = 0; i < 3 * kBatches; i += 3) {
    const Completion three[] = {completion(i), completion(i + 1), completion(i + 2)};
    cq->push_all(three, false);
  }
  done = true;
  poller.join();
  EXPECT_EQ(events.overflows, 1);
}

TEST(CompletionQueue, OneEventPerArm) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  cq->arm(false);
  EXPECT_EQ(events.events, 0);
  cq->push(completion(1), false);
  cq->push(completion(2), true);
  EXPECT_EQ(events.events, 1);
  drain(*cq);
  cq->arm(false);
  cq->arm(false);
  cq->push(completion(3), false);
  cq->push(completion(4), false);
  EXPECT_EQ(events.events, 2);
}

// As an adapter does, and not as IBA has it: a program that polls, arms and sleeps would miss what
// came between its poll and its arming.
TEST(CompletionQueue, ArmingTellsAtOnceWhatWaitsUntold) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  cq->push(completion(0), false);
  EXPECT_EQ(events.events, 0);
  cq->arm(false);
  EXPECT_EQ(events.events, 1);
  cq->push(completion(1), false);  // not armed any more
  EXPECT_EQ(events.events, 1);
  cq->arm(false);
  EXPECT_EQ(events.events, 2);
  cq->arm(false);  // the event before told of both
  EXPECT_EQ(events.events, 2);
  cq->push(completion(2), false);
  EXPECT_EQ(events.events, 3);
  // What the event of an armed queue has told of is not told again.
  cq->arm(false);
  EXPECT_EQ(events.events, 3);
}

TEST(CompletionQueue, ArmingDoesNotTellWhatWasPolled) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  for (uint64_t i = 0; i < 3; ++i) cq->push(completion(i), true);
  drain(*cq);
  cq->arm(true);
  cq->arm(false);
  EXPECT_EQ(events.events, 0);
}

TEST(CompletionQueue, ArmingForSolicitedTellsOnlyThose) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  ibv_wc wc[4];
  cq->push(completion(0), false);
  cq->arm(true);
  EXPECT_EQ(events.events, 0);
  cq->push(completion(1), true);  // armed
  EXPECT_EQ(events.events, 1);
  cq->push(completion(2), true);
  cq->push(completion(3), false);
  ASSERT_EQ(cq->poll(2, wc), 2);
  cq->arm(true);  // 2 waits, and no event has told of it
  EXPECT_EQ(events.events, 2);
  cq->push(completion(4), true);
  cq->push(completion(5), false);
  ASSERT_EQ(cq->poll(3, wc), 3);
  cq->arm(true);  // only 5 waits
  EXPECT_EQ(events.events, 2);
  cq->arm(false);
  EXPECT_EQ(events.events, 3);
}

TEST(CompletionQueue, SolicitedOnly) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  cq->arm(true);
  cq->push(completion(0), false);
  EXPECT_EQ(events.events, 0);
  cq->push(completion(1), true);
  EXPECT_EQ(events.events, 1);
  drain(*cq);
  cq->arm(false);
  cq->arm(true);  // does not weaken the request that is pending
  cq->push(completion(2), false);
  EXPECT_EQ(events.events, 2);
  drain(*cq);
  cq->arm(true);
  cq->arm(false);
  cq->push(completion(3), false);
  EXPECT_EQ(events.events, 3);
}

TEST(CompletionQueue, SeveralAtOnceAreOneEvent) {
  Counted events;
  auto cq = CompletionQueue::create(4, &events);
  const Completion three[] = {completion(0), completion(1), completion(2)};
  cq->arm(true);
  cq->push_all(three, false);
  EXPECT_EQ(events.events, 0);
  EXPECT_EQ(drain(*cq), (std::vector<uint64_t>{0, 1, 2}));
  cq->push_all({}, true);  // none is no event
  EXPECT_EQ(events.events, 0);
  cq->push_all(three, true);
  EXPECT_EQ(events.events, 1);
  EXPECT_FALSE(cq->overflowed());
  cq->push_all(three, true);  // room for one
  EXPECT_EQ(events.overflows, 1);
  EXPECT_EQ(drain(*cq), (std::vector<uint64_t>{0, 1, 2, 0}));
  events.events = 0;
  cq->arm(false);
  cq->push_all(three, false);
  cq->push_all(three, false);
  EXPECT_EQ(events.events, 1);
  EXPECT_EQ(events.overflows, 1);
}

TEST(CompletionQueue, ABatchHoldsFewAndLosesNone) {
  Counted events;
  auto cq = CompletionQueue::create(64, &events);
  std::vector<uint64_t> expected;
  cq->arm(true);
  {
    CompletionBatch batch(*cq);
    batch.add(completion(0), false);
    EXPECT_TRUE(drain(*cq).empty());
    batch.flush();
    EXPECT_EQ(drain(*cq), std::vector<uint64_t>{0});
    for (uint64_t i = 1; i <= 30; ++i) {
      batch.add(completion(i), i == 30);
      expected.push_back(i);
    }
    EXPECT_EQ(events.events, 0);
  }
  EXPECT_EQ(drain(*cq), expected);
  EXPECT_EQ(events.events, 1);
}

TEST(CompletionQueue, ResizeKeepsWhatWaits) {
  Counted events;
  auto cq = CompletionQueue::create(4, &events);
  for (uint64_t i = 0; i < 3; ++i) cq->push(completion(i), false);
  drain(*cq);
  for (uint64_t i = 0; i < 4; ++i) cq->push(completion(i), false);
  EXPECT_EQ(cq->resize(0), EINVAL);
  EXPECT_EQ(cq->resize(3), 0);  // rounds up to 4
  EXPECT_EQ(cq->resize(2), EINVAL);
  EXPECT_EQ(cq->capacity(), 4u);
  EXPECT_EQ(cq->resize(9), 0);
  EXPECT_EQ(cq->capacity(), 16u);
  for (uint64_t i = 4; i < 16; ++i) cq->push(completion(i), false);
  EXPECT_FALSE(cq->overflowed());
  const std::vector<uint64_t> ids = drain(*cq);
  ASSERT_EQ(ids.size(), 16u);
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(ids[i], i);
}

// An application that sleeps: arm, poll until empty, wait for the event. If arm() and push()
// could miss each other, it would wait for ever on completions that nobody announces.
TEST(CompletionQueue, NoEventIsLost) {
  struct Waking final : CompletionEvents {
    void on_completion_event() override { events.release(); }
    void on_overflow() override { ADD_FAILURE() << "overflow"; }
    std::counting_semaphore<> events{0};
  } waking;
  constexpr uint64_t kProducers = 2, kEach = 20'000;
  auto cq = CompletionQueue::create(64, &waking);
  std::atomic<uint64_t> taken{0}, pushed{0};
  std::vector<std::thread> producers;
  for (uint64_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (uint64_t i = 0; i < kEach; ++i) {
        // As a QP does, never more outstanding than the CQ holds.
        while (pushed.load() - taken.load() >= 32) std::this_thread::yield();
        pushed.fetch_add(1);
        cq->push(completion(i, static_cast<uint32_t>(p)), i % 2 == 0);
      }
    });
  }
  uint64_t next[kProducers] = {};
  while (taken < kProducers * kEach) {
    cq->arm(false);
    bool any = false;
    ibv_wc wc[16];
    while (int n = cq->poll(16, wc)) {
      any = true;
      for (int i = 0; i < n; ++i) ASSERT_EQ(wc[i].wr_id, next[wc[i].qp_num]++);
      taken.fetch_add(static_cast<uint64_t>(n));
    }
    if (!any && taken < kProducers * kEach) waking.events.acquire();
  }
  for (std::thread& producer : producers) producer.join();
}

// Two threads poll, one resizes and arms, two push: everything arrives exactly once.
TEST(CompletionQueue, ResizeWhilePolling) {
  Counted events;
  constexpr uint64_t kProducers = 2, kEach = 20'000;
  auto cq = CompletionQueue::create(64, &events);
  std::atomic<uint64_t> taken{0}, pushed{0}, sum{0};
  std::vector<std::thread> threads;
  for (uint64_t p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] {
      for (uint64_t i = 0; i < kEach; ++i) {
        while (pushed.load() - taken.load() >= 32) std::this_thread::yield();
        pushed.fetch_add(1);
        cq->push(completion(p * kEach + i), false);
      }
    });
  }
  for (int c = 0; c < 2; ++c) {
    threads.emplace_back([&] {
      ibv_wc wc[8];
      while (taken.load() < kProducers * kEach) {
        const int n = cq->poll(8, wc);
        for (int i = 0; i < n; ++i) sum.fetch_add(wc[i].wr_id);
        taken.fetch_add(static_cast<uint64_t>(n));
        if (n == 0) std::this_thread::yield();
      }
    });
  }
  for (uint32_t size = 64; taken.load() < kProducers * kEach; size = size == 64 ? 256 : 64) {
    EXPECT_EQ(cq->resize(size), 0);
    cq->arm(true);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t all = kProducers * kEach;
  EXPECT_EQ(sum.load(), all * (all - 1) / 2);
  EXPECT_EQ(events.overflows, 0);
}

}  // namespace
}  // namespace uiw::queue
