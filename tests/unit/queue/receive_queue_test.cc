// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/receive_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace uiw::queue {
namespace {

int post(ReceiveQueue& queue, uint64_t wr_id, std::vector<ibv_sge> sges = {}) {
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* list = &wr;
  const int result = queue.post(list);
  EXPECT_EQ(list, result == 0 ? nullptr : &wr);
  for (ibv_sge& sge : sges) sge = {};  // the queue must have copied them
  return result;
}

// As if its completion had been polled at once.
bool take(ReceiveQueue& queue, Receive& receive, bool& below) {
  if (!queue.take(receive, below)) return false;
  queue.freed().fetch_add(1);
  return true;
}

TEST(ReceiveQueue, HoldsExactlyItsDepth) {
  auto queue = ReceiveQueue::create(3, 2);
  Receive receive;
  bool below = true;
  EXPECT_FALSE(take(*queue, receive, below));
  EXPECT_FALSE(below);
  EXPECT_TRUE(queue->empty());
  for (uint64_t round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(post(*queue, round * 10 + i), 0);
    EXPECT_EQ(post(*queue, 99), ENOMEM);
    EXPECT_EQ(queue->count(), 3u);
    for (uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(take(*queue, receive, below));
      EXPECT_EQ(receive.wr_id, round * 10 + i);
    }
    EXPECT_TRUE(queue->empty());
    EXPECT_EQ(post(*queue, 7), 0);  // shift the start round the ring
    ASSERT_TRUE(take(*queue, receive, below));
  }
}

TEST(ReceiveQueue, OneThatIsGivenBackComesAgain) {
  auto queue = ReceiveQueue::create(2, 1);
  Receive receive;
  bool below;
  for (uint64_t i = 0; i < 5; ++i) {  // wherever the ring begins
    EXPECT_EQ(post(*queue, 2 * i, {{7, 8, 9}}), 0);
    EXPECT_EQ(post(*queue, 2 * i + 1), 0);
    ASSERT_TRUE(queue->take(receive, below));
    const uint64_t frees = receive.frees;
    EXPECT_TRUE(queue->give_back());
    EXPECT_EQ(queue->count(), 2u);
    EXPECT_EQ(post(*queue, 99), ENOMEM);
    ASSERT_TRUE(take(*queue, receive, below));
    EXPECT_EQ(receive.wr_id, 2 * i);
    EXPECT_EQ(receive.frees, frees);
    EXPECT_EQ(receive.length, 8u);
    ASSERT_TRUE(take(*queue, receive, below));
    EXPECT_EQ(receive.wr_id, 2 * i + 1);
    EXPECT_EQ(post(*queue, 99), 0);  // shift the start round the ring
    ASSERT_TRUE(take(*queue, receive, below));
  }
}

TEST(ReceiveQueue, OneOfManyTakersGivesNothingBack) {
  auto queue = ReceiveQueue::create(2, 1, ReceiveQueue::Takers::kMany);
  Receive receive;
  bool below;
  EXPECT_EQ(post(*queue, 1), 0);
  ASSERT_TRUE(queue->take(receive, below));
  EXPECT_FALSE(queue->give_back());
  EXPECT_TRUE(queue->empty());
}

TEST(ReceiveQueue, OneThatWasTakenKeepsItsPlace) {
  auto queue = ReceiveQueue::create(3, 1);
  Receive receive;
  bool below;
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(post(*queue, i), 0);
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(queue->take(receive, below));
    EXPECT_EQ(receive.frees, i);
    EXPECT_EQ(post(*queue, 9), ENOMEM);
  }
  EXPECT_TRUE(queue->empty());
  queue->freed() = 2;  // two completions were polled
  EXPECT_EQ(post(*queue, 3), 0);
  EXPECT_EQ(post(*queue, 4), 0);
  EXPECT_EQ(post(*queue, 9), ENOMEM);
  queue->give_up();
  EXPECT_EQ(post(*queue, 5), 0);
  EXPECT_EQ(queue->count(), 3u);
}

TEST(ReceiveQueue, ResizedBelowWhatWasTaken) {
  auto queue = ReceiveQueue::create(4, 1, ReceiveQueue::Takers::kMany);
  Receive receive;
  bool below;
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post(*queue, i), 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue->take(receive, below));
  EXPECT_EQ(queue->resize(2), 0);
  EXPECT_EQ(post(*queue, 4), ENOMEM);
  queue->freed().fetch_add(2);
  EXPECT_EQ(post(*queue, 4), ENOMEM);
  queue->freed().fetch_add(1);
  EXPECT_EQ(post(*queue, 4), 0);
  EXPECT_EQ(queue->count(), 2u);
}

TEST(ReceiveQueue, CopiesTheScatterList) {
  auto queue = ReceiveQueue::create(2, 3);
  EXPECT_EQ(post(*queue, 1, {{0x1000, 10, 5}, {0x2000, 0xffffffff, 6}}), 0);
  EXPECT_EQ(post(*queue, 2, {{0x3000, 1, 7}, {0x4000, 2, 8}, {0x5000, 3, 9}}), 0);
  Receive receive;
  bool below;
  ASSERT_TRUE(take(*queue, receive, below));
  ASSERT_EQ(receive.sge_count, 2u);
  EXPECT_EQ(receive.length, 10u + 0xffffffffull);
  EXPECT_EQ(receive.sges[1].addr, 0x2000u);
  EXPECT_EQ(receive.sges[1].lkey, 6u);
  ASSERT_TRUE(take(*queue, receive, below));
  ASSERT_EQ(receive.sge_count, 3u);
  EXPECT_EQ(receive.length, 6u);
  EXPECT_EQ(receive.sges[2].addr, 0x5000u);
}

TEST(ReceiveQueue, RefusesTooManySges) {
  auto queue = ReceiveQueue::create(2, 1);
  EXPECT_EQ(post(*queue, 1, {{0, 1, 1}, {0, 1, 1}}), EINVAL);
  ibv_recv_wr wr{};
  wr.num_sge = -1;
  ibv_recv_wr* list = &wr;
  EXPECT_EQ(queue->post(list), EINVAL);
  EXPECT_TRUE(queue->empty());
  EXPECT_EQ(ReceiveQueue::create(1, kMaxSge + 1), nullptr);
}

TEST(ReceiveQueue, AListIsPostedUpToWhatIsWrong) {
  auto queue = ReceiveQueue::create(4, 1);
  ibv_sge sge{0x1000, 5, 7};
  ibv_recv_wr wrs[6] = {};
  for (uint64_t i = 0; i < 6; ++i) {
    wrs[i].wr_id = i;
    wrs[i].sg_list = &sge;
    wrs[i].num_sge = 1;
    if (i < 5) wrs[i].next = &wrs[i + 1];
  }
  ibv_recv_wr* list = wrs;
  EXPECT_EQ(queue->post(list), ENOMEM);
  EXPECT_EQ(list, &wrs[4]);
  Receive receive;
  bool below;
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(take(*queue, receive, below));
    EXPECT_EQ(receive.wr_id, i);
  }
  wrs[2].num_sge = 2;
  list = wrs;
  EXPECT_EQ(queue->post(list), EINVAL);
  EXPECT_EQ(list, &wrs[2]);
  EXPECT_EQ(queue->count(), 2u);
}

TEST(ReceiveQueue, DepthZeroTakesNothing) {
  auto queue = ReceiveQueue::create(0, 0);
  EXPECT_EQ(post(*queue, 1), ENOMEM);
}

TEST(ReceiveQueue, ResizingKeepsWhatWaits) {
  auto queue = ReceiveQueue::create(4, 2);
  Receive receive;
  bool below;
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post(*queue, i), 0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(take(*queue, receive, below));
  // They go round the end of the ring.
  EXPECT_EQ(post(*queue, 4, {{0x1000, 1, 7}}), 0);
  EXPECT_EQ(post(*queue, 5, {{0x2000, 2, 8}, {0x3000, 3, 9}}), 0);
  EXPECT_EQ(queue->resize(3), EINVAL);
  EXPECT_EQ(queue->depth(), 4u);
  for (uint32_t depth : {6u, 4u}) {
    EXPECT_EQ(queue->resize(depth), 0);
    EXPECT_EQ(queue->depth(), depth);
    EXPECT_EQ(queue->count(), 4u);
  }
  EXPECT_EQ(post(*queue, 9), ENOMEM);
  for (uint64_t i = 2; i < 6; ++i) {
    ASSERT_TRUE(take(*queue, receive, below));
    EXPECT_EQ(receive.wr_id, i);
    if (i == 5) {
      ASSERT_EQ(receive.sge_count, 2u);
      EXPECT_EQ(receive.sges[1].addr, 0x3000u);
      EXPECT_EQ(receive.sges[1].lkey, 9u);
    }
  }
  EXPECT_EQ(queue->arm_limit(3), 0);
  EXPECT_EQ(queue->resize(2), EINVAL);  // the event could not be told truly any more
}

TEST(ReceiveQueue, LimitFiresOnceWhenFewerAreLeft) {
  auto queue = ReceiveQueue::create(4, 1);
  EXPECT_EQ(queue->arm_limit(5), EINVAL);
  for (uint64_t i = 0; i < 4; ++i) post(*queue, i);
  EXPECT_EQ(queue->arm_limit(2), 0);
  EXPECT_EQ(queue->limit(), 2u);
  Receive receive;
  bool below;
  take(*queue, receive, below);
  EXPECT_FALSE(below);  // 3 left
  take(*queue, receive, below);
  EXPECT_FALSE(below);  // 2 left
  take(*queue, receive, below);
  EXPECT_TRUE(below);  // 1 left
  EXPECT_EQ(queue->limit(), 0u);
  take(*queue, receive, below);
  EXPECT_FALSE(below);
  post(*queue, 1);
  EXPECT_EQ(queue->arm_limit(4), 0);
  EXPECT_EQ(queue->arm_limit(0), 0);  // disarmed
  take(*queue, receive, below);
  EXPECT_FALSE(below);
}

TEST(ReceiveQueue, ManyPostersOneTaker) {
  constexpr uint64_t kPosters = 3, kEach = 10'000;
  auto queue = ReceiveQueue::create(16, 1);
  std::vector<std::thread> posters;
  for (uint64_t p = 0; p < kPosters; ++p) {
    posters.emplace_back([&, p] {
      for (uint64_t i = 0; i < kEach; ++i)
        while (post(*queue, p << 32 | i, {{p, 1, 1}}) == ENOMEM) std::this_thread::yield();
    });
  }
  uint64_t next[kPosters] = {};
  for (uint64_t taken = 0; taken < kPosters * kEach;) {
    Receive receive;
    bool below;
    if (!take(*queue, receive, below)) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    ASSERT_EQ(receive.wr_id & 0xffffffff, next[receive.wr_id >> 32]++);
    ASSERT_EQ(receive.sges[0].addr, receive.wr_id >> 32);
  }
  for (std::thread& poster : posters) poster.join();
}

// Of a shared queue each receive goes to one taker, in order to each of them.
TEST(ReceiveQueue, ManyTakers) {
  constexpr uint64_t kTakers = 3, kReceives = 30'000;
  auto queue = ReceiveQueue::create(16, 1, ReceiveQueue::Takers::kMany);
  std::atomic<uint64_t> taken{0}, sum{0};
  std::vector<std::thread> takers;
  for (uint64_t t = 0; t < kTakers; ++t) {
    takers.emplace_back([&] {
      Receive receive;
      bool below;
      for (uint64_t last = 0; taken.load() < kReceives;) {
        if (!take(*queue, receive, below)) {
          std::this_thread::yield();
          continue;
        }
        ++taken;
        sum += receive.wr_id;
        EXPECT_GT(receive.wr_id, last);
        last = receive.wr_id;
      }
    });
  }
  for (uint64_t i = 1; i <= kReceives; ++i)
    while (post(*queue, i, {{i, 1, 1}}) == ENOMEM) std::this_thread::yield();
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(sum, kReceives * (kReceives + 1) / 2);
}

}  // namespace
}  // namespace uiw::queue
