// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// RDMA Write with immediate between two ends: an RDMA Write, then Immediate Data (RFC 7306 section
// 6).
#include "sim/media.h"

namespace uiw::test {
namespace {

constexpr auto kWriteImm = IBV_WR_RDMA_WRITE_WITH_IMM;
constexpr auto kOk = IBV_WC_SUCCESS, kFlush = IBV_WC_WR_FLUSH_ERR;
using Statuses = std::vector<ibv_wc_status>;
using Events = std::vector<ibv_event_type>;

class Immediate : public Behaviour {
 protected:
  static void expect_immediate(const ibv_wc& wc, uint64_t wr_id, uint32_t value, size_t size) {
    test::expect_immediate(wc, IBV_WC_RECV_RDMA_WITH_IMM, wr_id, value, size);
  }
};

// IM-05, IM-07, IM-09: from no octet to many; when it completes they are there.
TEST_P(Immediate, CompletesWhenTheWriteIsPlaced) {
  connect();
  Buffer untouched(b->memory, pattern(64, 9));
  size_t round = 0;
  for (size_t size : {0u, 1u, 100u, 1440u, 70000u, 1u << 20}) {
    SCOPED_TRACE(size);
    Buffer from(a->memory, pattern(size, static_cast<uint32_t>(round))), target(b->memory, size);
    ASSERT_EQ(b->receive(RecvWr({untouched.sge()}, round)), 0);
    unsigned flags = IBV_SEND_SIGNALED;
    if (round % 2) flags |= IBV_SEND_SOLICITED;
    ASSERT_EQ(a->post(SendWr(kWriteImm, {from.sge()}, round)
                          .to(target.start(), target.stag())
                          .immediate(0xcafe0000 + static_cast<uint32_t>(round))
                          .flags(flags)),
              0);
    ASSERT_REACHED(b->received_count() == round + 1);
    EXPECT_TRUE(target.content() == from.content());
    expect_immediate(b->received().back(), round, 0xcafe0000 + static_cast<uint32_t>(round), size);
    ASSERT_REACHED(a->sent_count() == round + 1);
    EXPECT_EQ(a->sent().back().opcode, IBV_WC_RDMA_WRITE);
    EXPECT_EQ(a->sent().back().status, kOk);
    ++round;
  }
  EXPECT_TRUE(untouched.content() == pattern(64, 9));
}

// IM-01, IM-03, IM-04: one receive each, in order with the Sends.
TEST_P(Immediate, IsDeliveredInOrderWithSends) {
  connect();
  constexpr uint32_t kCount = 90;
  Buffer to(b->memory, kCount * 8), from(a->memory, pattern(5000)), target(b->memory, 5000);
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(b->receive(RecvWr({to.sge(i * 8, 8)}, i)), 0);
  for (uint32_t i = 0; i < kCount; ++i) {
    const size_t size = i % 7 * 700;
    SendWr wr = i % 3 == 0 ? SendWr(IBV_WR_SEND, {from.sge(0, 8)}, i)
                           : SendWr(kWriteImm, {from.sge(0, size)}, i);
    if (i % 3) wr.to(target.start(), target.stag()).immediate(i);
    ASSERT_EQ(a->post(wr), 0);
  }
  ASSERT_REACHED(b->received_count() == kCount && a->sent_count() == kCount);
  const std::vector<ibv_wc> got = b->received();
  for (uint32_t i = 0; i < kCount; ++i) {
    if (i % 3) {
      expect_immediate(got[i], i, i, i % 7 * 700);
    } else {
      EXPECT_EQ(got[i].wr_id, i);
      EXPECT_EQ(got[i].opcode, IBV_WC_RECV);
      EXPECT_EQ(got[i].byte_len, 8u);
      EXPECT_EQ(got[i].wc_flags, 0u);
    }
  }
  expect_in_order(a->sent());
}

TEST_P(Immediate, WaitsForALateReceive) {
  connect();
  Buffer from(a->memory, pattern(100)), target(b->memory, 100);
  for (uint32_t i = 0; i < 3; ++i)
    ASSERT_EQ(
        a->post(SendWr(kWriteImm, {from.sge()}, i).to(target.start(), target.stag()).immediate(i)),
        0);
  world->settle();
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(b->received_count(), i);
    ASSERT_EQ(b->receive(RecvWr({}, i)), 0);
    ASSERT_REACHED(b->received_count() == i + 1);
    expect_immediate(b->received().back(), i, i, 100);
    world->settle();
  }
}

TEST_P(Immediate, WithoutAnyReceiveEndsTheConnection) {
  if (is_tcp()) return;  // takes time
  connect();
  Buffer from(a->memory, pattern(100)), target(b->memory, 100);
  ASSERT_EQ(a->post(SendWr(kWriteImm, {from.sge()}, 0).to(target.start(), target.stag())), 0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_FATAL});
  EXPECT_EQ(b->end_error(), EPROTO);
  EXPECT_EQ(a->end_error(), EPROTO);
}

// The Write is wrong: nothing is written, and no receive used.
TEST_P(Immediate, ToMemoryThatMayNotBeUsed) {
  connect();
  Buffer from(a->memory, pattern(100)), target(b->memory, 100), sink(a->memory, 8);
  ASSERT_EQ(b->receive(RecvWr({}, 0)), 0);
  ASSERT_EQ(
      a->post_all({SendWr(kWriteImm, {from.sge()}, 0).to(target.start() + 1, target.stag()),
                   SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 1).to(target.start(), target.stag())}),
      0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(b->received()), Statuses{kFlush});
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
  const Statuses got = statuses(a->sent());
  // RFC 5040 5.5(9): it may have completed before the peer refused it.
  if (got != Statuses{kOk, kFlush}) {
    EXPECT_EQ(got, (Statuses{IBV_WC_REM_ACCESS_ERR, kFlush}));
  }
  EXPECT_TRUE(target.content() == Octets(100));
}

TEST_P(Immediate, TakesSharedReceives) {
  auto srq = queue::ReceiveQueue::create(64, 1, queue::ReceiveQueue::Takers::kMany);
  std::vector<std::pair<End*, End*>> links;
  for (int i = 0; i < 3; ++i) links.push_back(world->connect({}, {.srq = srq.get()}));
  for (uint64_t id = 0; id < 30; ++id) {
    RecvWr wr({}, id);
    ASSERT_EQ(test::post(*srq, wr.get()), 0);
  }
  ASSERT_EQ(srq->arm_limit(5), 0);
  for (uint32_t i = 0; i < 10; ++i)
    for (uint32_t link = 0; link < 3; ++link)
      ASSERT_EQ(
          links[link].first->post(SendWr(kWriteImm, {}, i).to(0, 1).immediate(link * 100 + i)), 0);
  const auto received = [&] {
    size_t sum = 0;
    for (auto& [from, at] : links) sum += at->received_count();
    return sum;
  };
  ASSERT_REACHED(received() == 30);
  std::vector<bool> used(30, false);
  size_t limits = 0;
  for (uint32_t link = 0; link < 3; ++link) {
    const std::vector<ibv_wc> got = links[link].second->received();
    ASSERT_EQ(got.size(), 10u);
    for (uint32_t i = 0; i < 10; ++i) {
      EXPECT_EQ(got[i].imm_data, __builtin_bswap32(link * 100 + i));
      EXPECT_EQ(got[i].qp_num, links[link].second->qp_num);
      EXPECT_FALSE(used.at(got[i].wr_id));
      used[got[i].wr_id] = true;
    }
    for (const Notice& n : links[link].second->notices()) limits += n.kind == Notice::kSrqLimit;
  }
  EXPECT_EQ(limits, 1u);
  for (auto& [from, at] : links) at->destroy();  // before the queue they refer to
}

}  // namespace

UIWARP_EVERYWHERE(Immediate, 12);

}  // namespace uiw::test
