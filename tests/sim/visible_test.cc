// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program may rely on in the very moment in which it polls a completion: looked at right
// there, before anything else can happen (RFC 5040 5.5).
#include <algorithm>

#include "sim/media.h"

namespace uiw::test {
namespace {

class Visible : public Behaviour {};

constexpr size_t kSlots = 8, kRounds = 12;

size_t size_of(size_t round, size_t slot) {
  return 1 + (round * 1009 + slot * 4001) % 20000;
}
uint32_t seed_of(size_t round, size_t slot) {
  return static_cast<uint32_t>(round * kSlots + slot);
}

// OC-02: several at a time, so that those behind are arriving while the first are looked at.
TEST_P(Visible, WithASendDeliveredAllEarlierWritesAndSendsAreInMemory) {
  connect();
  constexpr size_t kMost = 20001;
  Buffer written(b->memory, kSlots * kMost), sent(b->memory, kSlots * kMost),
      from(a->memory, kSlots * kMost);
  size_t looked_at = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      ASSERT_EQ(b->receive(RecvWr({sent.sge(slot * kMost, kMost)}, slot)), 0);
      const Octets content = pattern(size_of(round, slot), seed_of(round, slot));
      std::copy(content.begin(), content.end(), from.data() + slot * kMost);
    }
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      const size_t size = size_of(round, slot), at = slot * kMost, half = size / 2;
      // In two Writes, the second part first.
      for (const auto& [start, length] : {std::pair(at + half, size - half), std::pair(at, half)}) {
        ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(start, length)})
                              .to(written.start() + start, written.stag())
                              .flags(0)),
                  0);
      }
      ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge(at, size)}, slot)), 0);
    }
    bool right = true;
    ASSERT_TRUE(run_until([&] {
      for (const size_t delivered = b->received_count(); looked_at < delivered; ++looked_at) {
        const size_t slot = looked_at % kSlots, at = slot * kMost;
        const Octets expected = pattern(size_of(round, slot), seed_of(round, slot));
        for (Buffer* place : {&written, &sent})
          right = right && std::equal(expected.begin(), expected.end(), place->data() + at);
      }
      return looked_at == (round + 1) * kSlots;
    }));
    EXPECT_TRUE(right) << "round " << round;
    ASSERT_REACHED(a->sent_count() == (round + 1) * kSlots);  // its memory is used again
  }
}

// OC-10
TEST_P(Visible, WithAReadCompletedItsDataIsInMemory) {
  connect({.ord = 4}, {.ird = 4});
  const Octets content = pattern(40000);
  Buffer source(b->memory, content), sinks(a->memory, kSlots * 20001);
  size_t looked_at = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    std::fill_n(sinks.data(), sinks.size(), 0);
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      const size_t size = size_of(round, slot);
      ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sinks.sge(slot * 20001, size)}, slot)
                            .to(source.start() + slot * 100, source.stag())),
                0);
    }
    bool right = true;
    ASSERT_TRUE(run_until([&] {
      for (const size_t done = a->sent_count(); looked_at < done; ++looked_at) {
        const size_t slot = looked_at % kSlots, size = size_of(round, slot);
        const uint8_t* sink = sinks.data() + slot * 20001;
        right =
            right && std::equal(sink, sink + size, content.data() + slot * 100) && sink[size] == 0;
      }
      return looked_at == (round + 1) * kSlots;
    }));
    EXPECT_TRUE(right) << "round " << round;
  }
}

// OC-06: with its completion a Send or Write has been taken over; what the program does to the
// buffer then reaches nobody. Writes and Sends of one octet up to more than a socket takes.
TEST_P(Visible, AfterACompletionTheBufferCanBeUsedAgain) {
  connect();
  constexpr size_t kMessages = 60, kMost = 150000;
  Buffer from(a->memory, kMost);
  std::vector<std::unique_ptr<Buffer>> to;
  const auto size_at = [](size_t i) { return 1 + i * i * 41 % kMost; };
  for (uint64_t i = 0; i < kMessages; ++i) {
    to.push_back(std::make_unique<Buffer>(b->memory, size_at(i)));
    if (i % 2) {
      ASSERT_EQ(b->receive(RecvWr({to[i]->sge()}, i)), 0);
    }
  }
  for (uint64_t i = 0; i < kMessages; ++i) {
    const Octets content = pattern(size_at(i), static_cast<uint32_t>(i));
    std::copy(content.begin(), content.end(), from.data());
    const ibv_sge part = from.sge(0, content.size());
    ASSERT_EQ(
        a->post(i % 2 ? SendWr(IBV_WR_SEND, {part}, i)
                      : SendWr(IBV_WR_RDMA_WRITE, {part}, i).to(to[i]->start(), to[i]->stag())),
        0);
    ASSERT_TRUE(run_until([&] {
      if (a->sent_count() <= i) return false;
      std::fill_n(from.data(), kMost, 0xee);
      return true;
    }));
  }
  ASSERT_REACHED(b->received_count() == kMessages / 2);
  for (uint32_t i = 0; i < kMessages; ++i)
    EXPECT_TRUE(to[i]->content() == pattern(size_at(i), i)) << i;
}

// OC-05: the Send has long been delivered, and completes behind the Read all the same.
TEST_P(Visible, ASendBehindADelayedReadCompletesBehindIt) {
  connect();
  Buffer source(b->memory, pattern(5000)), sink(a->memory, 5000), to(b->memory, 16);
  // The answer waits behind a Send that finds no receive yet.
  ASSERT_EQ(b->post(SendWr(IBV_WR_SEND, {}, 0)), 0);
  ASSERT_REACHED(b->sent_count() == 1);
  ASSERT_EQ(b->receive(RecvWr({to.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(source.start(), source.stag())),
            0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {sink.sge(0, 8)}, 1)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {}, 2)), 0);
  ASSERT_REACHED(b->received_count() == 1);
  world->settle();
  EXPECT_EQ(a->sent_count(), 0u);
  ASSERT_EQ(a->receive(RecvWr({}, 0)), 0);
  ASSERT_REACHED(a->sent_count() == 3);
  expect_in_order(a->sent());
  EXPECT_TRUE(sink.content() == source.content());
}

// RO-06: however many Writes there were, the first receive is still there for the first Send.
TEST_P(Visible, WritesAreNotSeenByTheTarget) {
  connect();
  Buffer target(b->memory, 20000), to(b->memory, 16), from(a->memory, pattern(20000));
  for (uint64_t id = 0; id < 3; ++id) ASSERT_EQ(b->receive(RecvWr({to.sge()}, id)), 0);
  for (uint64_t i = 0; i < 20; ++i) {
    const size_t size = i % 4 == 0 ? 0 : i * 1000;
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, size)}, i)
                          .to(target.start(), target.stag())
                          .flags(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)),
              0);
  }
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 20)), 0);  // answered when all of them are there
  ASSERT_REACHED(a->sent_count() == 21);
  EXPECT_EQ(b->received_count() + b->sent_count(), 0u);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge(0, 5)}, 21)), 0);
  ASSERT_REACHED(b->received_count() == 1);
  EXPECT_EQ(b->received()[0].wr_id, 0u);
  EXPECT_EQ(b->received()[0].byte_len, 5u);
}

}  // namespace

UIWARP_EVERYWHERE(Visible, 12);

}  // namespace uiw::test
