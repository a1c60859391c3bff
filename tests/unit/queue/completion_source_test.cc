// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What polling frees, and what becomes of the completions of queue pairs that are gone.
#include "queue/completion_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "queue/completion_queue.h"

namespace uiw::queue {
namespace {

using Kind = CompletionSource::Kind;

struct Counted final : CompletionEvents {
  void on_completion_event() override { ++events; }
  void on_overflow() override { ++overflows; }
  int events = 0, overflows = 0;
};

// One side of a queue pair: its work requests complete one behind the other.
struct Side {
  explicit Side(Kind kind = Kind::kOwnQueue) : Side(kind, own) {}
  Side(Kind kind, std::atomic<uint64_t>& counter)
      : freed(counter), owned(std::make_unique<CompletionSource>(kind, counter)) {}

  Completion completes(uint64_t wr_id = 0, uint64_t unsignaled_before = 0) {
    completed += 1 + unsignaled_before;
    ibv_wc wc{};
    wc.wr_id = wr_id;
    return {wc, owned.get(), completed};
  }

  std::atomic<uint64_t> own{0};
  std::atomic<uint64_t>& freed;
  std::unique_ptr<CompletionSource> owned;
  uint64_t completed = 0;
};

std::vector<uint64_t> take(CompletionQueue& cq, int count) {
  std::vector<ibv_wc> wc(static_cast<size_t>(count));
  wc.resize(static_cast<size_t>(cq.poll(count, wc.data())));
  std::vector<uint64_t> ids;
  for (const ibv_wc& one : wc) ids.push_back(one.wr_id);
  return ids;
}

TEST(CompletionSource, PollingFreesAllBeforeWhatItTakes) {
  auto cq = CompletionQueue::create(8, nullptr);
  Side side, other;
  cq->push(side.completes(0), false);
  cq->push(side.completes(1, 5), false);
  cq->push(other.completes(2, 2), false);
  cq->push(side.completes(3), false);
  EXPECT_EQ(side.freed, 0u);
  take(*cq, 1);
  EXPECT_EQ(side.freed, 1u);
  take(*cq, 1);
  EXPECT_EQ(side.freed, 7u);
  EXPECT_EQ(other.freed, 0u);
  take(*cq, 8);
  EXPECT_EQ(side.freed, 8u);
  EXPECT_EQ(other.freed, 3u);
}

TEST(CompletionSource, OfASharedQueueEachFreesOne) {
  auto first = CompletionQueue::create(8, nullptr), second = CompletionQueue::create(8, nullptr);
  std::atomic<uint64_t> freed{0};
  Side one(Kind::kSharedQueue, freed), two(Kind::kSharedQueue, freed);
  for (int i = 0; i < 3; ++i) first->push(one.completes(), false);
  for (int i = 0; i < 2; ++i) second->push(two.completes(), false);
  take(*second, 8);
  EXPECT_EQ(freed, 2u);
  take(*first, 2);
  EXPECT_EQ(freed, 4u);
  first->purge(std::move(one.owned));  // others go on with what it held
  EXPECT_EQ(freed, 5u);
}

TEST(CompletionSource, OfASharedQueueWhatIsLostIsFreed) {
  Counted events;
  auto cq = CompletionQueue::create(1, &events);
  Side side(Kind::kSharedQueue);
  const Completion three[] = {side.completes(), side.completes(), side.completes()};
  cq->push_all(three, false);
  EXPECT_EQ(events.overflows, 1);
  EXPECT_EQ(side.freed, 2u);
}

TEST(CompletionSource, PurgeDropsWhatWasNotPolled) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  Side gone, stays;
  for (uint64_t i = 0; i < 6; ++i) cq->push(gone.completes(100 + i), false);
  take(*cq, 6);  // the rest goes round the end of the ring
  for (uint64_t i = 0; i < 8; ++i) cq->push((i % 3 == 0 ? gone : stays).completes(i), false);
  std::vector<uint64_t> dropped(cq->waiting_of(*gone.owned));
  EXPECT_EQ(cq->purge(std::move(gone.owned), dropped.data()), 3u);
  EXPECT_EQ(dropped, (std::vector<uint64_t>{0, 3, 6}));
  EXPECT_EQ(take(*cq, 8), (std::vector<uint64_t>{1, 2, 4, 5, 7}));
  EXPECT_EQ(gone.freed, 6u) << "its work queue may be gone";
  EXPECT_EQ(take(*cq, 8), std::vector<uint64_t>{});
  cq->arm(false);
  EXPECT_EQ(events.events, 0);
}

// What was purged takes nobody's place.
TEST(CompletionSource, PurgedOnesMakeRoom) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  Side stays;
  cq->push(stays.completes(0), true);
  for (uint64_t round = 1; round < 5; ++round) {
    Side gone;
    for (uint64_t i = 0; i < 3; ++i) cq->push(gone.completes(), false);
    cq->push(stays.completes(round), false);
    cq->purge(std::move(gone.owned));
  }
  EXPECT_EQ(events.overflows, 0);
  cq->arm(true);  // the solicited one waits still
  EXPECT_EQ(events.events, 1);
  EXPECT_EQ(take(*cq, 8), (std::vector<uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(stays.freed, 5u);
}

TEST(CompletionSource, OnlyPurgedOnesAreNoReasonForAnEvent) {
  Counted events;
  auto cq = CompletionQueue::create(4, &events);
  Side gone;
  cq->push(gone.completes(), true);
  cq->purge(std::move(gone.owned));
  cq->arm(false);
  EXPECT_EQ(events.events, 0);
  Side side;
  cq->push(side.completes(), false);
  EXPECT_EQ(events.events, 1);
}

TEST(CompletionSource, ResizeLeavesPurgedOnesBehind) {
  Counted events;
  auto cq = CompletionQueue::create(8, &events);
  Side gone, stays;
  for (uint64_t i = 0; i < 8; ++i) cq->push((i < 5 ? gone : stays).completes(i), false);
  cq->purge(std::move(gone.owned));
  EXPECT_EQ(cq->resize(2), EINVAL);
  EXPECT_EQ(cq->resize(4), 0);
  EXPECT_EQ(take(*cq, 8), (std::vector<uint64_t>{5, 6, 7}));
}

// Many queue pairs come, complete and go, while what they left is polled, or not; by a model.
TEST(CompletionSource, ChurnAgainstAModel) {
  std::mt19937 random(1);
  Counted events;
  auto cq = CompletionQueue::create(64, &events);
  std::map<uint64_t, Side> sides;
  std::vector<std::pair<uint64_t, uint64_t>> waiting;  // side, wr_id
  uint64_t next = 0;
  for (int step = 0; step < 200'000; ++step) {
    const uint64_t side = random() % 16;
    switch (random() % 8) {
      case 0:
        if (sides.contains(side)) {
          cq->purge(std::move(sides.at(side).owned));
          sides.erase(side);
          std::erase_if(waiting, [&](const auto& one) { return one.first == side; });
        }
        break;
      case 1: {
        const std::vector<uint64_t> got = take(*cq, static_cast<int>(random() % 20));
        for (uint64_t id : got) {
          ASSERT_FALSE(waiting.empty());
          ASSERT_EQ(id, waiting.front().second);
          waiting.erase(waiting.begin());
        }
        break;
      }
      default:
        if (waiting.size() == 64) break;
        cq->push(sides[side].completes(next), false);
        waiting.emplace_back(side, next++);
    }
  }
  EXPECT_EQ(events.overflows, 0);
  for (auto& [number, side] : sides) cq->purge(std::move(side.owned));
  EXPECT_TRUE(take(*cq, 64).empty());
}

// One thread completes, two poll, and every now and then the queue pair is another one.
TEST(CompletionSource, PurgedBelowThosePolling) {
  Counted events;
  auto cq = CompletionQueue::create(64, &events);
  std::atomic<bool> over{false};
  std::vector<std::thread> pollers;
  for (int i = 0; i < 2; ++i)
    pollers.emplace_back([&] {
      while (!over) take(*cq, 4);
    });
  for (int round = 0; round < 20'000; ++round) {
    Side side;
    // All of it is purged, while a poll may be about to free that many places.
    for (int i = 0; i < (round % 2 ? 20 : 64); ++i) cq->push(side.completes(), false);
    cq->purge(std::move(side.owned));
  }
  over = true;
  for (std::thread& poller : pollers) poller.join();
  EXPECT_EQ(events.overflows, 0);
  EXPECT_TRUE(take(*cq, 64).empty());
}

}  // namespace
}  // namespace uiw::queue
