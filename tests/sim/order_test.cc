// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What waits for what, and in which order work requests complete.
#include "sim/media.h"

namespace uiw::test {
namespace {

class Order : public Behaviour {};

TEST_P(Order, ManyReadsAtOnceWithScatteredSinks) {
  connect({.ord = 8}, {.ird = 8});
  const Octets content = pattern(300000);
  Buffer source(b->memory, content), sink(a->memory, content.size());
  constexpr size_t kReads = 30, kEach = 10000;
  for (uint64_t i = 0; i < kReads; ++i) {
    const size_t at = i * kEach;
    std::vector<ibv_sge> sinks = {sink.sge(at, 1), sink.sge(at + 1, 0), sink.sge(at + 1, 4999),
                                  sink.sge(at + 5000, 5000)};
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, sinks, i).to(source.start() + at, source.stag())),
              0);
  }
  ASSERT_REACHED(a->sent_count() == kReads);
  expect_in_order(a->sent());
  for (const ibv_wc& wc : a->sent()) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_TRUE(sink.content() == content);
}

TEST_P(Order, OneReadAtATime) {
  connect({.ord = 1}, {.ird = 1});
  Buffer source(b->memory, pattern(1000)), sink(a->memory, 1000);
  for (uint64_t i = 0; i < 40; ++i)
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge(i * 25, 25)}, i)
                          .to(source.start() + i * 25, source.stag())),
              0);
  ASSERT_REACHED(a->sent_count() == 40);
  expect_in_order(a->sent());
  EXPECT_TRUE(sink.content() == source.content());
}

TEST_P(Order, AZeroLengthReadNeedsNoMemory) {
  connect();
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 0).to(0xdead, 0xbeef)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {{1, 0, 2}}, 1).to(0xdead, 0xbeef)), 0);
  ASSERT_REACHED(a->sent_count() == 2);
  for (const ibv_wc& wc : a->sent()) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

// RFC 5040 5.5: a Read that follows a Write sees it; completions come in posting order.
TEST_P(Order, ReadsSeeEarlierWrites) {
  connect();
  Buffer target(b->memory, 64), from(a->memory, pattern(6400)), back(a->memory, 6400);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(i * 64, 64)}, i * 2)
                          .to(target.start(), target.stag())),
              0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {back.sge(i * 64, 64)}, i * 2 + 1)
                          .to(target.start(), target.stag())),
              0);
    // The next Write may overtake the Read's answer at the target.
    ASSERT_REACHED(a->sent_count() == i * 2 + 2);
  }
  expect_in_order(a->sent());
  EXPECT_TRUE(back.content() == from.content());
}

TEST_P(Order, AFencedWriteDoesNotReachWhatAnEarlierReadReads) {
  connect();
  constexpr size_t kSize = 100000;
  const Octets old = pattern(kSize, 1), fresh = pattern(kSize, 2);
  Buffer target(b->memory, old), from(a->memory, fresh), back(a->memory, kSize);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {back.sge()}, 0).to(target.start(), target.stag())),
            0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 1)
                        .to(target.start(), target.stag())
                        .flags(IBV_SEND_SIGNALED | IBV_SEND_FENCE)),
            0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 2)), 0);  // until the Write is there
  ASSERT_REACHED(a->sent_count() == 3);
  EXPECT_TRUE(back.content() == old);
  EXPECT_TRUE(target.content() == fresh);
}

TEST_P(Order, ASendTellsThatEarlierWritesAreThere) {
  connect();
  constexpr size_t kSize = 200000;
  Buffer target(b->memory, kSize);
  for (uint32_t round = 0; round < 5; ++round) {
    Buffer from(a->memory, pattern(kSize, round));
    ASSERT_EQ(b->receive(RecvWr({}, round)), 0);
    ASSERT_EQ(
        a->post(
            SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 0).to(target.start(), target.stag()).flags(0)),
        0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {}, round)), 0);
    ASSERT_REACHED(b->received_count() == round + 1);
    EXPECT_TRUE(target.content() == from.content());
    ASSERT_REACHED(a->sent_count() == round + 1);
  }
  EXPECT_EQ(a->async_events().size(), 0u);
}

TEST_P(Order, UnsignaledAndInline) {
  connect();
  Buffer to(b->memory, 100 * 16);
  for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(b->receive(RecvWr({to.sge(i * 16, 16)}, i)), 0);
  for (uint64_t i = 0; i < 100; ++i) {
    Octets text = pattern(16, static_cast<uint32_t>(i));
    const unsigned flags = IBV_SEND_INLINE | (i % 10 == 9 ? IBV_SEND_SIGNALED : 0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {{reinterpret_cast<uint64_t>(text.data()), 16, 0}}, i)
                          .flags(flags)),
              0);
  }
  ASSERT_REACHED(b->received_count() == 100 && a->sent_count() == 10);
  expect_in_order(b->received());
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(a->sent()[i].wr_id, i * 10 + 9);
  for (uint32_t i = 0; i < 100; ++i)
    EXPECT_TRUE(std::equal(to.data() + i * 16, to.data() + i * 16 + 16, pattern(16, i).data()));
}

TEST_P(Order, AResponderSpeaksOnlyAfterTheInitiator) {
  connect({.rtr = mpa::Rtr::kNone}, {.rtr = mpa::Rtr::kNone});
  Buffer text(b->memory, pattern(10)), to(a->memory, 10);
  ASSERT_EQ(a->receive(RecvWr({to.sge()}, 1)), 0);
  ASSERT_EQ(b->post(SendWr(IBV_WR_SEND, {text.sge()}, 2)), 0);
  world->settle();
  EXPECT_EQ(a->received_count() + b->sent_count(), 0u);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {}, 3)), 0);
  ASSERT_REACHED(a->received_count() == 1 && b->sent_count() == 1);
  EXPECT_TRUE(to.content() == text.content());
}

TEST_P(Order, TheReadRtrLeavesNoTrace) {
  connect({.rtr = mpa::Rtr::kRead, .ord = 1}, {.ird = 1});
  Buffer text(b->memory, pattern(10)), to(a->memory, 10), sink(a->memory, 10);
  ASSERT_EQ(a->receive(RecvWr({to.sge()}, 0)), 0);
  ASSERT_EQ(b->post(SendWr(IBV_WR_SEND, {text.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(text.start(), text.stag())), 0);
  ASSERT_REACHED(a->received_count() == 1 && a->sent_count() == 1 && b->sent_count() == 1);
  EXPECT_EQ(b->received_count(), 0u);
  EXPECT_TRUE(sink.content() == text.content());
}

}  // namespace

UIWARP_EVERYWHERE(Order, 12);

}  // namespace uiw::test
