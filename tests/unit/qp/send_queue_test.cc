// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/send_queue.h"

#include <gtest/gtest.h>

#include "support/machine.h"

namespace uiw::test {
namespace {

int post(qp::SendQueue& queue, SendWr wr) {
  return test::post(queue, wr.get());
}

TEST(SendQueue, HoldsExactlyItsDepth) {
  for (uint32_t depth : {1u, 3u, 64u}) {
    auto queue = qp::SendQueue::create(depth, 1, 0);
    for (int round = 0; round < 3; ++round) {
      for (uint32_t i = 0; i < depth; ++i) EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND, {}, i)), 0);
      EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND)), ENOMEM);
      for (uint32_t i = 0; i < depth; ++i) {
        ASSERT_TRUE(queue->has_unstarted());
        EXPECT_EQ(queue->first_unstarted().wr_id, i);
        queue->start();
        EXPECT_EQ(queue->first_unretired().wr_id, i);
        queue->retire();
        EXPECT_FALSE(queue->has_unretired());
      }
      EXPECT_FALSE(queue->has_unstarted());
      // Complete, but nobody has polled that.
      EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND)), ENOMEM);
      queue->freed() = queue->retired();
    }
  }
}

// As UCX posts them; the sanitizers would say what is wrong with a copy from nowhere.
TEST(SendQueue, NothingInlineMayBeNowhere) {
  auto queue = qp::SendQueue::create(1, 2, 8);
  const uint32_t value = 7;
  SendWr wr(IBV_WR_SEND, {{reinterpret_cast<uint64_t>(&value), sizeof value, 0}, {0, 0, 0}});
  wr.flags(IBV_SEND_INLINE);
  ASSERT_EQ(post(*queue, wr), 0);
  EXPECT_EQ(queue->first_unstarted().length, sizeof value);
}

TEST(SendQueue, KeepsWhatWasPosted) {
  auto queue = qp::SendQueue::create(2, 2, 0);
  SendWr wr(IBV_WR_RDMA_READ, {{0x1000, 5, 7}, {0x2000, 6, 8}}, 99);
  wr.to(0x3000, 0x44).flags(IBV_SEND_FENCE | IBV_SEND_SOLICITED);
  ASSERT_EQ(test::post(*queue, wr.get()), 0);
  wr.sges[0].addr = 0;  // the caller's list may change
  const qp::SendWqe& slot = queue->first_unstarted();
  EXPECT_EQ(slot.wr_id, 99u);
  EXPECT_EQ(slot.opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(slot.remote_addr, 0x3000u);
  EXPECT_EQ(slot.rkey, 0x44u);
  EXPECT_EQ(slot.length, 11u);
  EXPECT_TRUE(slot.fence && slot.solicited && !slot.signaled && !slot.is_inline);
  ASSERT_EQ(slot.sge_count, 2);
  EXPECT_EQ(slot.sges()[0].addr, 0x1000u);
  EXPECT_EQ(slot.sges()[1].lkey, 8u);
}

TEST(SendQueue, ABatchIsPostedAsAWholeOrNotAtAll) {
  auto queue = qp::SendQueue::create(3, 1, 0);
  ASSERT_EQ(post(*queue, SendWr(IBV_WR_SEND, {}, 1)), 0);
  for (bool publish : {false, true}) {
    queue->begin();
    const auto add = [&](SendWr wr) { return queue->add(wr.get(), false); };
    EXPECT_EQ(add(SendWr(IBV_WR_SEND, {{.addr = 0, .length = 5, .lkey = 0}}, 2)), 0);
    EXPECT_EQ(add(SendWr(IBV_WR_SEND_WITH_IMM, {}, 3)), EINVAL);  // takes no slot
    EXPECT_EQ(add(SendWr(IBV_WR_SEND, {{.addr = 0, .length = 7, .lkey = 0}}, 4).flags(0)), 0);
    EXPECT_EQ(add(SendWr(IBV_WR_SEND, {{.addr = 0, .length = 9, .lkey = 0}}, 5)), ENOMEM);
    EXPECT_EQ(queue->posted(), 1u);
    const qp::SendQueue::Added added = queue->end(publish);
    EXPECT_EQ(added.requests, publish ? 2u : 0u);
    EXPECT_EQ(added.bytes, publish ? 12u : 0u);  // of those that were taken
    EXPECT_EQ(queue->posted(), publish ? 3u : 1u);
  }
  for (uint64_t id : {1, 2, 4}) {
    ASSERT_TRUE(queue->has_unstarted());
    EXPECT_EQ(queue->first_unstarted().wr_id, id);
    queue->start();
    EXPECT_EQ(queue->completion_due(), id != 4);  // the last is unsignaled
    queue->retire();
  }
}

TEST(SendQueue, RefusesWhatCannotBeSent) {
  auto queue = qp::SendQueue::create(4, 2, 16);
  Octets octets(32);
  const auto at = reinterpret_cast<uint64_t>(octets.data());
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND_WITH_IMM)), EINVAL);
  EXPECT_EQ(post(*queue, SendWr(static_cast<ibv_wr_opcode>(77))), EINVAL);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{at, 1, 1}, {at, 1, 1}, {at, 1, 1}})), EINVAL);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{at, 9, 1}, {at, 8, 1}}).flags(IBV_SEND_INLINE)),
            EINVAL);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{at, 8, 1}, {at, 8, 1}}).flags(IBV_SEND_INLINE)), 0);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_RDMA_READ, {{at, 8, 1}}).flags(IBV_SEND_INLINE)), EINVAL);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{at, 0x80000000, 1}})), 0);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{at, 0x80000000, 1}, {at, 1, 1}})), EINVAL);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{at, 0xffffffff, 1}, {at, 0xffffffff, 1}})), EINVAL);
  ibv_send_wr negative{};
  negative.num_sge = -1;
  EXPECT_EQ(test::post(*queue, negative), EINVAL);
  EXPECT_EQ(queue->posted(), 2u);
}

TEST(SendQueue, LocalRequestsHaveNoLengthWhateverTheirSgesSay) {
  auto queue = qp::SendQueue::create(1, 1, 0);
  ibv_send_wr invalidate{};
  invalidate.opcode = IBV_WR_LOCAL_INV;
  invalidate.num_sge = 1;  // and no list
  queue->begin();
  EXPECT_EQ(queue->add(invalidate, false), 0);
  const qp::SendQueue::Added added = queue->end(true);
  EXPECT_EQ(added.requests, 1u);
  EXPECT_EQ(added.bytes, 0u);
}

// As drivers do: what they do not know they do not look at.
TEST(SendQueue, FlagsThatNobodyKnowsAreIgnored) {
  auto queue = qp::SendQueue::create(32, 1, 0);
  constexpr unsigned kKnown =
      IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const unsigned flag = 1u << bit;
    if (flag & kKnown) continue;
    ASSERT_EQ(post(*queue, SendWr(IBV_WR_SEND).flags(flag)), 0) << bit;
    const qp::SendWqe& slot = queue->slot(queue->start());
    EXPECT_FALSE(slot.fence || slot.signaled || slot.solicited || slot.is_inline) << bit;
  }
}

TEST(SendQueue, KeepsTheOperandsOfAtomics) {
  auto queue = qp::SendQueue::create(4, 2, 16);
  const ibv_sge sink{0x1000, 8, 7};
  ASSERT_EQ(post(*queue, SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {sink}).atomic(0x3008, 0x44, 5, 6)),
            0);
  ASSERT_EQ(
      post(*queue, SendWr(IBV_WR_ATOMIC_CMP_AND_SWP, {sink, sink}).atomic(0x3010, 0x45, 5, 6)), 0);
  const qp::SendWqe& add = queue->slot(queue->start());
  EXPECT_EQ(add.remote_addr, 0x3008u);
  EXPECT_EQ(add.rkey, 0x44u);
  EXPECT_EQ(add.operands.add_or_swap, 5u);
  EXPECT_EQ(add.operands.compare, 0u);
  EXPECT_EQ(add.length, 8u);
  EXPECT_EQ(add.sges()[0].addr, 0x1000u);  // beside them
  EXPECT_EQ(add.sges()[0].lkey, 7u);
  const qp::SendWqe& swap = queue->slot(queue->start());
  EXPECT_EQ(swap.remote_addr, 0x3010u);
  EXPECT_EQ(swap.rkey, 0x45u);
  EXPECT_EQ(swap.operands.add_or_swap, 6u);
  EXPECT_EQ(swap.operands.compare, 5u);
  EXPECT_EQ(swap.length, 8u);  // however large the sink
  ASSERT_EQ(swap.sge_count, 2);
  EXPECT_EQ(swap.sges()[1].addr, 0x1000u);
}

TEST(SendQueue, KeepsOneSgeAsItKeepsMany) {
  auto queue = qp::SendQueue::create(3, 3, 0);
  ASSERT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{0x1000, 5, 7}})), 0);
  ASSERT_EQ(post(*queue, SendWr(IBV_WR_SEND, {{0x2000, 5, 7}, {0x3000, 6, 8}, {0x4000, 7, 9}})), 0);
  ASSERT_EQ(post(*queue, SendWr(IBV_WR_RDMA_READ, {{0x5000, 8, 10}}).to(0x6000, 1)), 0);
  for (uint64_t place : {0x1000u, 0x2000u, 0x5000u}) {
    const qp::SendWqe& slot = queue->slot(queue->start());
    for (uint32_t i = 0; i < slot.sge_count; ++i)
      EXPECT_EQ(slot.sges()[i].addr, place + 0x1000u * i);
  }
}

TEST(SendQueue, RefusesAtomicsThatCannotWork) {
  auto queue = qp::SendQueue::create(8, 2, 16);
  for (ibv_wr_opcode opcode : {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    for (uint64_t offset = 0; offset < 8; ++offset)
      EXPECT_EQ(post(*queue, SendWr(opcode, {{0x1000, 8, 7}}).atomic(0x3000 + offset, 1, 0)),
                offset ? EINVAL : 0);
    EXPECT_EQ(post(*queue, SendWr(opcode, {{0x1000, 7, 7}}).atomic(0x3000, 1, 0)), EINVAL);
    EXPECT_EQ(post(*queue, SendWr(opcode).atomic(0x3000, 1, 0)), EINVAL);
    EXPECT_EQ(post(*queue, SendWr(opcode, {{0x1000, 4, 7}, {0x2000, 4, 7}}).atomic(0x3000, 1, 0)),
              0);
    EXPECT_EQ(
        post(*queue, SendWr(opcode, {{0x1000, 8, 7}}).atomic(0x3000, 1, 0).flags(IBV_SEND_INLINE)),
        EINVAL);
  }
  EXPECT_EQ(queue->posted(), 4u);
}

TEST(SendQueue, KeepsImmediateData) {
  auto queue = qp::SendQueue::create(2, 2, 16);
  ASSERT_EQ(post(*queue, SendWr(IBV_WR_RDMA_WRITE_WITH_IMM).to(0x3000, 0x44).immediate(0xdeadbeef)),
            0);
  const qp::SendWqe& slot = queue->first_unstarted();
  EXPECT_EQ(slot.immediate, 0xefbeaddeu);  // network order in memory
  EXPECT_EQ(slot.remote_addr, 0x3000u);
  EXPECT_EQ(slot.rkey, 0x44u);
}

TEST(SendQueue, WithoutInlineOrSges) {
  auto queue = qp::SendQueue::create(2, 0, 0);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND)), 0);
  EXPECT_EQ(post(*queue, SendWr(IBV_WR_SEND).flags(IBV_SEND_INLINE)), 0);
}

}  // namespace
}  // namespace uiw::test
