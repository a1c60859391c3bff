// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The receive machine where the vectors say nothing: waiting for receives, the limit of a shared
// queue, invalidation, messages in several segments, answers to our Reads.
#include "qp/rx.h"

#include <gtest/gtest.h>

#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

uint16_t code_of(Machine& m) {
  return static_cast<uint16_t>(m.rx().fault().terminate.code);
}
Octets send(uint32_t msn, std::span<const uint8_t> payload, uint8_t opcode = 3) {
  return fpdu(untagged(opcode, 0, msn, 0, payload));
}

class CountEvents final : public queue::CompletionEvents {
 public:
  void on_completion_event() override { ++events; }
  void on_overflow() override {}
  int events = 0;
};

TEST(Rx, WaitsForAReceiveAndLosesNothing) {
  // Three Sends and a Write, in one piece and in small ones.
  for (size_t piece : {1u, 7u, 50u, 1000u}) {
    SCOPED_TRACE(piece);
    Machine m({.wait_for_receive = true});
    Buffer to(m.memory, 64), target(m.memory, 8);
    Octets stream = send(1, pattern(10, 1));
    stream = concat(stream, send(2, pattern(60, 2)));
    stream = concat(stream, fpdu(tagged(0, target.stag(), target.start(), pattern(8))));
    stream = concat(stream, send(3, pattern(3, 3)));
    RxStatus status = RxStatus::kOk;
    for (size_t at = 0; at < stream.size(); at += piece)
      status = m.feed({stream.data() + at, std::min(piece, stream.size() - at)});
    EXPECT_EQ(status, RxStatus::kWantReceive);
    EXPECT_FALSE(m.rx().at_boundary());
    EXPECT_EQ(m.rx().resume(), RxStatus::kWantReceive);
    EXPECT_FALSE(m.rx().take_progress());
    EXPECT_TRUE(target.content() == Octets(8));  // behind the Send that waits
    const size_t sizes[] = {10, 60, 3};
    for (uint64_t id = 0; id < 3; ++id) {
      m.receive(RecvWr({to.sge()}, id));
      EXPECT_EQ(m.rx().resume(), id == 2 ? RxStatus::kOk : RxStatus::kWantReceive);
      EXPECT_TRUE(m.rx().take_progress());
      EXPECT_FALSE(m.rx().take_progress());
      const std::vector<ibv_wc> got = m.received();
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].wr_id, id);
      EXPECT_EQ(got[0].byte_len, sizes[id]);
      const Octets expected = pattern(sizes[id], static_cast<uint32_t>(id + 1));
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.data()));
      EXPECT_EQ(target.content() == pattern(8), id >= 1);
    }
    EXPECT_TRUE(m.rx().at_boundary());
    EXPECT_EQ(m.rx().resume(), RxStatus::kOk);  // nothing waits any more
  }
}

TEST(Rx, TakesMoreWhileItWaits) {
  Machine m({.wait_for_receive = true});
  Buffer to(m.memory, 200000);
  EXPECT_EQ(m.feed(send(1, pattern(100))), RxStatus::kWantReceive);
  for (uint32_t msn = 2; msn <= 5; ++msn)
    EXPECT_EQ(m.feed(send(msn, pattern(60000, msn))), RxStatus::kWantReceive);
  for (uint64_t id = 1; id <= 5; ++id) m.receive(RecvWr({to.sge()}, id));
  EXPECT_EQ(m.rx().resume(), RxStatus::kOk);
  EXPECT_EQ(m.received().size(), 5u);
  EXPECT_EQ(m.feed(send(6, {})), RxStatus::kWantReceive);
}

TEST(Rx, WaitsInTheMiddleOfNothing) {
  // A message that has its receive already does not wait again for its later segments.
  Machine m({.wait_for_receive = true});
  Buffer to(m.memory, 64);
  m.receive(RecvWr({to.sge()}, 1));
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, pattern(5), false))), RxStatus::kOk);
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 5, pattern(5)))), RxStatus::kOk);
  EXPECT_EQ(m.received().at(0).byte_len, 10u);
}

TEST(Rx, GivesUpWaitingWithTheStrictFault) {
  Machine m({.wait_for_receive = true});
  EXPECT_EQ(m.feed(send(1, {})), RxStatus::kWantReceive);
  EXPECT_EQ(m.rx().give_up_waiting(), RxStatus::kFault);
  EXPECT_EQ(code_of(m), 0x1202);
  EXPECT_EQ(m.rx().resume(), RxStatus::kOk);
}

TEST(Rx, GoesOnWaitingAfterAReceiveThatCameAtTheLastMoment) {
  Machine m({.wait_for_receive = true});
  EXPECT_EQ(m.feed(send(1, {})), RxStatus::kWantReceive);
  m.receive(RecvWr({}, 1));
  EXPECT_EQ(m.rx().give_up_waiting(), RxStatus::kOk);
  EXPECT_EQ(m.feed(send(2, {})), RxStatus::kWantReceive);
}

TEST(Rx, FailsTheReceiveInProgress) {
  Machine m;
  Buffer to(m.memory, 64);
  m.receive(RecvWr({to.sge()}, 9));
  m.rx().fail_receive(IBV_WC_WR_FLUSH_ERR, core::Cause::kModifiedToError);
  EXPECT_TRUE(m.received().empty());
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, pattern(5), false))), RxStatus::kOk);
  m.rx().fail_receive(IBV_WC_WR_FLUSH_ERR, core::Cause::kModifiedToError);
  m.rx().fail_receive(IBV_WC_WR_FLUSH_ERR, core::Cause::kModifiedToError);
  const std::vector<ibv_wc> got = m.received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].wr_id, 9u);
  EXPECT_EQ(got[0].status, IBV_WC_WR_FLUSH_ERR);
}

TEST(Rx, TellsOnceThatTheSharedQueueRunsLow) {
  Machine m;
  for (uint64_t id = 0; id < 4; ++id) m.receive(RecvWr({}, id));
  ASSERT_EQ(m.receives->arm_limit(3), 0);
  EXPECT_EQ(m.feed(send(1, {})), RxStatus::kOk);
  EXPECT_FALSE(m.rx().take_limit_reached());
  EXPECT_EQ(m.feed(send(2, {})), RxStatus::kOk);
  EXPECT_TRUE(m.rx().take_limit_reached());
  EXPECT_EQ(m.feed(send(3, {})), RxStatus::kOk);
  EXPECT_FALSE(m.rx().take_limit_reached());
}

TEST(Rx, SolicitedSendsWakeWhoWaitsForThemOnly) {
  Machine m;
  CountEvents events;
  auto cq = queue::CompletionQueue::create(16, &events);
  m.connection->shared.recv_cq = cq.get();
  for (uint64_t id = 0; id < 4; ++id) m.receive(RecvWr({}, id));
  cq->arm(true);
  EXPECT_EQ(m.feed(send(1, {}, 3)), RxStatus::kOk);
  EXPECT_EQ(events.events, 0);
  EXPECT_EQ(m.feed(send(2, {}, 5)), RxStatus::kOk);
  EXPECT_EQ(events.events, 1);
  cq->arm(true);
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 3, 0, pattern(1)))),
            RxStatus::kFault);  // an error wakes as well
  EXPECT_EQ(events.events, 2);
}

TEST(Rx, ReceivesAreCheckedAgainstTheirOwnDomain) {
  Machine m;
  m.connection->shared.receive_pd = kOtherPd;  // of the shared queue
  Buffer to(m.memory, 64, kAllAccess, kOtherPd), wrong(m.memory, 64);
  m.receive(RecvWr({to.sge()}, 1));
  m.receive(RecvWr({wrong.sge()}, 2));
  EXPECT_EQ(m.feed(send(1, pattern(5))), RxStatus::kOk);
  EXPECT_EQ(m.feed(send(2, pattern(5))), RxStatus::kFault);
  EXPECT_EQ(code_of(m), 0x0207);
  EXPECT_EQ(m.rx().fault().event, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(m.received().at(1).status, IBV_WC_LOC_PROT_ERR);
}

// What adapters do: queue/scatter.h.
TEST(Rx, OnlyWhatIsPlacedIsChecked) {
  struct Case {
    size_t message;
    bool fits;
  };
  for (const auto& [message, fits] : {Case{64, true}, Case{10, true}, Case{65, false}}) {
    SCOPED_TRACE(message);
    Machine m;
    Buffer to(m.memory, 64);
    m.receive(RecvWr({{to.start(), 256, to.stag()}}, 1));  // longer than its region
    EXPECT_EQ(m.feed(send(1, pattern(message))), fits ? RxStatus::kOk : RxStatus::kFault);
    EXPECT_EQ(m.received().at(0).status, fits ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
    if (fits) EXPECT_TRUE(std::equal(to.data(), to.data() + message, pattern(message).data()));
  }
  for (const auto& [message, fits] : {Case{64, true}, Case{0, true}, Case{65, false}}) {
    SCOPED_TRACE(message);
    Machine m;
    Buffer to(m.memory, 64);
    m.receive(RecvWr({to.sge(), {to.start(), 64, 0xdead00}}, 1));  // the second names no region
    EXPECT_EQ(m.feed(send(1, pattern(message))), fits ? RxStatus::kOk : RxStatus::kFault);
    EXPECT_EQ(m.received().at(0).status, fits ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
  }
}

// Each segment of a message is checked for itself.
TEST(Rx, ASegmentBeyondTheRegionIsRefused) {
  Machine m;
  Buffer to(m.memory, 64);
  m.receive(RecvWr({{to.start(), 256, to.stag()}}, 1));
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, pattern(40), false))), RxStatus::kOk);
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 40, pattern(24), false))), RxStatus::kOk);
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 64, pattern(1), true))), RxStatus::kFault);
  EXPECT_EQ(m.received().at(0).status, IBV_WC_LOC_PROT_ERR);
}

TEST(Rx, AReceiveMustBeWritable) {
  Machine m;
  Buffer to(m.memory, 64, mem::kRemoteRead);
  m.receive(RecvWr({to.sge()}, 1));
  EXPECT_EQ(m.feed(send(1, pattern(5))), RxStatus::kFault);
  EXPECT_TRUE(to.content() == Octets(64));
}

TEST(Rx, ZeroLengthMessagesLookAtNoMemory) {
  Machine m;
  m.receive(RecvWr({{1, 0, 2}, {3, 8, 4}}, 1));
  EXPECT_EQ(m.feed(send(1, {})), RxStatus::kOk);
  EXPECT_EQ(m.received().at(0).status, IBV_WC_SUCCESS);
}

// DS-20: on receive a tagged message may be interrupted by an untagged one.
TEST(Rx, ASendBetweenTheSegmentsOfAWrite) {
  Machine m;
  Buffer target(m.memory, 20);
  m.receive(RecvWr({}, 1));
  EXPECT_EQ(m.feed(fpdu(tagged(0, target.stag(), target.start(), pattern(10), false))),
            RxStatus::kOk);
  EXPECT_EQ(m.feed(send(1, {})), RxStatus::kOk);
  EXPECT_EQ(m.feed(fpdu(tagged(0, target.stag(), target.start() + 10, pattern(10)))),
            RxStatus::kOk);
  EXPECT_EQ(m.received().size(), 1u);
}

TEST(Rx, InterleavedSendsAreRefused) {
  Machine m;
  Buffer to(m.memory, 64);
  for (uint64_t id = 1; id <= 2; ++id) m.receive(RecvWr({to.sge()}, id));
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, pattern(5), false))), RxStatus::kOk);
  EXPECT_EQ(m.feed(send(2, {})), RxStatus::kFault);
  EXPECT_EQ(code_of(m), 0x1203);
  Machine n;
  Buffer other(n.memory, 64);
  n.receive(RecvWr({other.sge()}, 1));
  EXPECT_EQ(n.feed(fpdu(untagged(3, 0, 1, 0, pattern(5), false))), RxStatus::kOk);
  EXPECT_EQ(n.feed(fpdu(untagged(5, 0, 1, 5, pattern(5)))),
            RxStatus::kFault);  // another opcode in the middle
  EXPECT_EQ(code_of(n), 0x0206);
}

TEST(Rx, QueueNumbersMustFitTheOpcode) {
  struct {
    uint8_t opcode;
    uint32_t qn;
  } wrong[] = {{3, 0xffffffff}, {1, 0}, {7, 0}, {3, 2}, {0xb, 0}};
  for (const auto& w : wrong) {
    Machine m;
    m.receive(RecvWr({}, 1));
    EXPECT_EQ(m.feed(fpdu(untagged(w.opcode, w.qn, 1, 0, {}))), RxStatus::kFault);
    EXPECT_EQ(code_of(m), 0x1201) << int{w.opcode};
  }
}

TEST(Rx, InvalidationIsRefusedAtTheEndOfTheMessage) {
  for (uint8_t opcode : {4, 6}) {
    Machine m;
    Buffer to(m.memory, 64);
    m.receive(RecvWr({to.sge()}, 1));
    EXPECT_EQ(m.feed(fpdu(untagged(opcode, 0, 1, 0, pattern(5), false, to.stag()))), RxStatus::kOk);
    EXPECT_EQ(m.feed(fpdu(untagged(opcode, 0, 1, 5, pattern(5), true, to.stag()))),
              RxStatus::kFault);
    // RFC 5040 8.1.1(7): a region is usable by every stream of its domain.
    EXPECT_EQ(code_of(m), 0x0209);
    EXPECT_FALSE(m.rx().fault().terminate.has_read_header);
    EXPECT_EQ(m.received().at(0).status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_TRUE(m.memory.find(to.stag()));
  }
}

class ReadAnswer : public testing::Test {
 protected:
  ReadAnswer() : sink(m.memory, 10) {
    m.post(SendWr(IBV_WR_RDMA_READ, {sink.sge(0, 4), sink.sge(4, 6)}, 5).to(0x1000, 1));
    cookie = read_be32(&ulpdus_of(m.transmit()).at(0)[18]);
  }
  RxStatus answer(uint64_t to, size_t size, bool last, uint32_t stag_change = 0) {
    return m.feed(fpdu(tagged(2, cookie ^ stag_change, to, pattern(size), last)));
  }
  void expect_refused(uint16_t code) {
    EXPECT_EQ(code_of(m), code);
    EXPECT_EQ(m.rx().fault().failed_slot, 0u);
    EXPECT_EQ(m.rx().fault().failed_status, IBV_WC_BAD_RESP_ERR);
    EXPECT_EQ(m.rx().fault().event, IBV_EVENT_QP_FATAL);
  }
  Machine m;
  Buffer sink;
  uint32_t cookie = 0;
};

TEST_F(ReadAnswer, CompletesWithItsLastSegmentOnly) {
  EXPECT_EQ(answer(0, 10, false), RxStatus::kOk);
  m.tx().retire();
  EXPECT_TRUE(m.sent().empty());  // OC-07
  EXPECT_EQ(answer(10, 0, true), RxStatus::kOk);
  EXPECT_TRUE(m.rx().take_news());
  m.tx().retire();
  EXPECT_EQ(m.sent().at(0).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(sink.content() == pattern(10));
}
TEST_F(ReadAnswer, WithAnotherStag) {
  EXPECT_EQ(answer(0, 10, true, 1), RxStatus::kFault);
  expect_refused(0x1100);
}
TEST_F(ReadAnswer, WithAGap) {
  EXPECT_EQ(answer(0, 4, false), RxStatus::kOk);
  EXPECT_EQ(answer(5, 5, true), RxStatus::kFault);
  expect_refused(0x1101);
}
TEST_F(ReadAnswer, TooShort) {
  EXPECT_EQ(answer(0, 9, true), RxStatus::kFault);
  expect_refused(0x1101);
}
TEST_F(ReadAnswer, TooLong) {
  EXPECT_EQ(answer(0, 8, false), RxStatus::kOk);
  EXPECT_EQ(answer(8, 3, true), RxStatus::kFault);
  expect_refused(0x1101);
  EXPECT_EQ(sink.content()[8], 0);
}
TEST_F(ReadAnswer, IntoASinkThatWentAway) {
  sink.deregister();
  EXPECT_EQ(answer(0, 10, true), RxStatus::kFault);
  EXPECT_EQ(code_of(m), 0x0000);
  EXPECT_EQ(m.rx().fault().failed_status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(m.rx().fault().event, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_TRUE(sink.content() == Octets(10));
}

TEST(Rx, MoreReadsThanGranted) {
  Machine m({.initiator = false, .ird = 2});
  Buffer source(m.memory, pattern(10));
  const auto request = [&](uint32_t msn) {
    return fpdu(untagged(1, 1, msn, 0, read_request(1, 0, 10, source.stag(), source.start())));
  };
  EXPECT_EQ(m.feed(request(1)), RxStatus::kOk);
  EXPECT_EQ(m.feed(request(2)), RxStatus::kOk);
  m.transmit();  // both answered: two more may come
  EXPECT_EQ(m.feed(request(3)), RxStatus::kOk);
  EXPECT_EQ(m.feed(request(4)), RxStatus::kOk);
  EXPECT_EQ(m.feed(request(5)), RxStatus::kFault);
  EXPECT_EQ(code_of(m), 0x1202);
  EXPECT_EQ(m.rx().fault().event, IBV_EVENT_QP_REQ_ERR);
  EXPECT_FALSE(m.rx().fault().terminate.has_read_header);
}

TEST(Rx, SinkFieldsOfARequestAreEchoedUntouched) {
  for (uint32_t stag : {0u, 1u, 0xffffffffu}) {
    Machine m({.initiator = false});
    Buffer source(m.memory, pattern(10));
    EXPECT_EQ(m.feed(fpdu(untagged(
                  1, 1, 1, 0, read_request(stag, ~0ull - 2, 10, source.stag(), source.start())))),
              RxStatus::kOk);
    EXPECT_EQ(to_hex(m.transmit()), to_hex(fpdu(tagged(2, stag, ~0ull - 2, pattern(10)))));
  }
}

}  // namespace
}  // namespace uiw::test
