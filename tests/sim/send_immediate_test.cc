// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sends with immediate between two ends that have them, and towards one that does not.
#include "sim/media.h"

namespace uiw::test {
namespace {

constexpr auto kSendImm = IBV_WR_SEND_WITH_IMM;

class SendImmediate : public Behaviour {
 protected:
  void connect(EndOptions first = {}, EndOptions second = {}) {
    first.immediates = second.immediates = true;
    Behaviour::connect(first, second);
  }
  static void expect_immediate(const ibv_wc& wc, uint64_t wr_id, uint32_t value, size_t size) {
    test::expect_immediate(wc, IBV_WC_RECV, wr_id, value, size);
  }
};

TEST_P(SendImmediate, BringsBytesAndImmediateToOneReceive) {
  connect();
  uint64_t round = 0;
  for (size_t size : {0u, 1u, 100u, 1440u, 70000u, 1u << 20}) {
    SCOPED_TRACE(size);
    const uint32_t value = 0xcafe0000 + static_cast<uint32_t>(round);
    Buffer from(a->memory, pattern(size, value)), into(b->memory, size);
    ASSERT_EQ(b->receive(RecvWr({into.sge()}, round)), 0);
    ASSERT_EQ(a->post(SendWr(kSendImm, {from.sge()}, round).immediate(value)), 0);
    ASSERT_REACHED(b->received_count() == round + 1 && a->sent_count() == round + 1);
    EXPECT_TRUE(into.content() == from.content());
    expect_immediate(b->received().back(), round, value, size);
    EXPECT_EQ(a->sent().back().opcode, IBV_WC_SEND);
    ++round;
  }
}

// Both ask at once.
TEST_P(SendImmediate, BothWaysInOrderWithSendsAndWrites) {
  connect({.ird = 1, .ord = 1}, {.ird = 1, .ord = 1});
  constexpr uint32_t kCount = 60;
  struct Way {
    End *from, *to;
    Buffer source, target, into;
  } ways[] = {{a, b, {a->memory, pattern(5000)}, {b->memory, 5000}, {b->memory, 5000}},
              {b, a, {b->memory, pattern(5000)}, {a->memory, 5000}, {a->memory, 5000}}};
  for (Way& way : ways) {
    for (uint64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(way.to->receive(RecvWr({way.into.sge()}, i)), 0);
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    for (Way& way : ways) {
      SendWr wr(i % 3 == 0   ? kSendImm
                : i % 3 == 1 ? IBV_WR_SEND
                             : IBV_WR_RDMA_WRITE_WITH_IMM,
                {way.source.sge(0, i * 50)}, i);
      if (i % 3 == 2) wr.to(way.target.start(), way.target.stag());
      ASSERT_EQ(way.from->post(wr.immediate(i)), 0);
    }
  }
  ASSERT_REACHED(a->sent_count() == kCount && b->sent_count() == kCount &&
                 a->received_count() == kCount && b->received_count() == kCount);
  for (Way& way : ways) {
    expect_in_order(way.from->sent());
    const std::vector<ibv_wc> got = way.to->received();
    for (uint32_t i = 0; i < kCount; ++i) {
      if (i % 3 == 0)
        expect_immediate(got[i], i, i, i * 50);
      else
        EXPECT_EQ(got[i].wc_flags, i % 3 == 2 ? unsigned{IBV_WC_WITH_IMM} : 0u);
    }
  }
}

TEST_P(SendImmediate, AcknowledgedItHasCompletedAReceive) {
  connect({.acknowledged = true}, {.acknowledged = true});
  Buffer from(a->memory, pattern(3000)), into(b->memory, 3000);
  for (uint64_t id = 0; id < 60; ++id) ASSERT_EQ(b->receive(RecvWr({into.sge()}, id)), 0);
  for (uint32_t id = 0; id < 60; ++id)
    ASSERT_EQ(a->post(SendWr(kSendImm, {from.sge()}, id).immediate(id)), 0);
  EXPECT_TRUE(run_until([&] {
    const size_t sent = a->sent_count();
    EXPECT_LE(sent, b->received_count());
    return sent == 60;
  }));
}

TEST_P(SendImmediate, WaitsForALateReceive) {
  connect();
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  for (uint32_t i = 0; i < 3; ++i)
    ASSERT_EQ(a->post(SendWr(kSendImm, {from.sge()}, i).immediate(i)), 0);
  world->settle();
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(b->received_count(), i);
    ASSERT_EQ(b->receive(RecvWr({into.sge()}, i)), 0);
    ASSERT_REACHED(b->received_count() == i + 1);
    expect_immediate(b->received().back(), i, i, 100);
    world->settle();
  }
}

// The peer has the iWARP face: what was sent before arrives, the Send with immediate does not.
TEST_P(SendImmediate, ToAPeerThatDoesNotTakeItIsAnError) {
  Behaviour::connect({.immediates = true}, {});
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  for (uint64_t id = 0; id < 3; ++id) ASSERT_EQ(b->receive(RecvWr({into.sge()}, id)), 0);
  ASSERT_EQ(a->post_all({SendWr(IBV_WR_SEND, {from.sge()}, 0), SendWr(kSendImm, {from.sge()}, 1),
                         SendWr(IBV_WR_SEND, {from.sge()}, 2)}),
            0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(a->sent()),
            (std::vector{IBV_WC_SUCCESS, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_EQ(statuses(b->received()),
            (std::vector{IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}));
}

TEST_P(SendImmediate, ADisconnectWaitsForTheAnswerToTheQuestion) {
  connect();
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  ASSERT_EQ(b->receive(RecvWr({into.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(kSendImm, {from.sge()}, 0).immediate(5)), 0);
  a->disconnect();
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(a->sent()), std::vector{IBV_WC_SUCCESS});
  expect_immediate(b->received().at(0), 0, 5, 100);
}

}  // namespace

UIWARP_EVERYWHERE(SendImmediate, 20);

}  // namespace uiw::test
