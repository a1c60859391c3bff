// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program may do the moment it sees a completion, and what wakes one that waits for none.
#include <vector>

#include "core/instrumented.h"
#include "support/machine.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::test {
namespace {

class CountEvents final : public queue::CompletionEvents {
 public:
  void on_completion_event() override {
    ++events;
    if (queue) posted = test::post(*queue, next.get(), true);
  }
  void on_overflow() override {}

  int events = 0;
  qp::SendQueue* queue = nullptr;  // posted to from inside the event
  SendWr next{IBV_WR_SEND};
  int posted = -1;
};

TEST(CompletionOrder, TheSlotIsFreeWhenTheCompletionWasPolled) {
  Machine machine({.depth = 1});
  CountEvents events;
  auto cq = queue::CompletionQueue::create(4, &events);
  machine.connection->shared.send_cq = cq.get();
  events.queue = machine.sends.get();
  cq->arm(false);
  ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND)), 0);
  ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND)), ENOMEM);
  ASSERT_FALSE(machine.transmit().empty());
  EXPECT_EQ(events.events, 1);
  EXPECT_EQ(events.posted, ENOMEM) << "nobody has polled it";
  EXPECT_EQ(drain(*cq).size(), 1u);
  EXPECT_EQ(machine.post(SendWr(IBV_WR_SEND)), 0);
}

TEST(CompletionOrder, UnsignaledSlotsAreFreeWhenALaterCompletionWasPolled) {
  Machine machine({.depth = 4});
  const auto unsignaled = [] { return SendWr(IBV_WR_SEND).flags(0); };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(machine.post(unsignaled()), 0);
  ASSERT_FALSE(machine.transmit().empty());
  EXPECT_TRUE(machine.sent().empty());
  ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND)), 0);
  ASSERT_EQ(machine.post(unsignaled()), ENOMEM);
  ASSERT_FALSE(machine.transmit().empty());
  EXPECT_EQ(machine.post(unsignaled()), ENOMEM);
  EXPECT_EQ(machine.sent().size(), 1u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(machine.post(unsignaled()), 0);
  EXPECT_EQ(machine.post(unsignaled()), ENOMEM);
}

std::vector<uint32_t> places_told() {
  Machine machine({.depth = 4});
  EXPECT_EQ(machine.post(SendWr(IBV_WR_SEND).flags(0)), 0);
  EXPECT_EQ(machine.post(SendWr(IBV_WR_SEND)), 0);
  EXPECT_FALSE(machine.transmit().empty());
  EXPECT_EQ(machine.post(SendWr(IBV_WR_SEND).flags(0)), 0);
  EXPECT_EQ(machine.post(SendWr(IBV_WR_SEND)), 0);
  machine.tx().flush(machine.connection->shared);
  std::vector<uint32_t> places;
  for (const ibv_wc& wc : machine.sent()) places.push_back(wc.src_qp);
  return places;
}

TEST(CompletionOrder, ACompletionTellsInstrumentsWhichRequestOfItsQueueItIsOf) {
  EXPECT_EQ(places_told(), (std::vector<uint32_t>{0, 0, 0}));
  const uiwarp_verbs instrument{};
  core::instrumented.store(&instrument);
  EXPECT_EQ(places_told(), (std::vector<uint32_t>{2, 3, 4}));
  core::instrumented.store(nullptr);
}

// What counters say at the moment that a completion can be seen.
class ReadCounters final : public queue::CompletionEvents {
 public:
  explicit ReadCounters(const counters::Slot& of) : counters_(of) {}
  void on_completion_event() override {
    sends = counters_.completed_sends.get();
    receives = counters_.completed_receives.get();
  }
  void on_overflow() override {}

  uint64_t sends = 0, receives = 0;

 private:
  const counters::Slot& counters_;
};

// Or a program that answers a completion at once seems to have more in flight than it may.
TEST(CompletionOrder, ACompletionIsCountedBeforeItIsSeen) {
  Machine machine;
  counters::Slot counters;
  ReadCounters seen(counters);
  auto cq = queue::CompletionQueue::create(4, &seen);
  qp::Shared& shared = machine.connection->shared;
  shared.send_cq = shared.recv_cq = cq.get();
  shared.counters = &counters;
  machine.sends->count_in(counters.posted_sends, counters.completed_sends);
  machine.receives->count_in(counters.posted_receives);
  cq->arm(false);
  ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND).flags(0)), 0);
  ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND)), 0);
  EXPECT_EQ(counters.posted_sends.get(), 2u);
  ASSERT_FALSE(machine.transmit().empty());
  EXPECT_EQ(seen.sends, 2u);
  cq->arm(false);
  ASSERT_EQ(machine.receive(RecvWr()), 0);
  EXPECT_EQ(counters.posted_receives.get(), 1u);
  ASSERT_EQ(machine.feed(fpdu(untagged(3, 0, 1, 0, {}))), qp::RxStatus::kOk);
  EXPECT_EQ(seen.receives, 1u);
}

TEST(CompletionOrder, AReceiveIsFreeWhenItsCompletionWasPolled) {
  Machine machine({.receives = 1});
  ASSERT_EQ(machine.receive(RecvWr()), 0);
  ASSERT_EQ(machine.feed(fpdu(untagged(3, 0, 1, 0, {}))), qp::RxStatus::kOk);
  EXPECT_EQ(machine.receive(RecvWr()), ENOMEM);
  EXPECT_EQ(machine.received().size(), 1u);
  EXPECT_EQ(machine.receive(RecvWr()), 0);
}

// doc/decisions/003-write-wakes-idle-sender.md
class WriteWakes : public testing::Test {
 protected:
  WriteWakes() : memory(machine.memory, 64), cq(queue::CompletionQueue::create(4, &events)) {
    machine.connection->shared.send_cq = cq.get();
  }
  // Receives have a CQ of their own, which is armed so often.
  void arm_receives(int times) {
    receives = queue::CompletionQueue::create(4, &of_receives);
    machine.connection->shared.recv_cq = receives.get();
    for (; times > 0; --times) receives->arm(false);
  }
  void has_sent() { ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND).flags(0)), 0); }
  void write_arrives(bool last = true) {
    const Octets ulpdu = tagged(0, memory.stag(), memory.start(), Octets(8, 0x55), last);
    ASSERT_EQ(machine.rx().on_octets(fpdu(ulpdu)), qp::RxStatus::kOk);
  }

  Machine machine;
  Buffer memory;
  CountEvents events, of_receives;
  std::unique_ptr<queue::CompletionQueue> cq, receives;
};

TEST_F(WriteWakes, ASleeperWithNothingToCome) {
  has_sent();
  cq->arm(false);
  write_arrives();
  EXPECT_EQ(events.events, 1);
  ibv_wc wc;
  EXPECT_EQ(cq->poll(1, &wc), 0);
  write_arrives();
  EXPECT_EQ(events.events, 1) << "one event per arming";
}

TEST_F(WriteWakes, NobodyWhoHasSentNothing) {
  cq->arm(false);
  write_arrives();
  EXPECT_EQ(events.events, 0);
}

// librpma: events of both queues wake it, and one without a completion is an error to it.
TEST_F(WriteWakes, NobodyWhoArmsTheOtherCqAgain) {
  has_sent();
  cq->arm(false);
  arm_receives(2);
  write_arrives();
  EXPECT_EQ(events.events, 0);
}

TEST_F(WriteWakes, ASleeperWhoHasArmedTheOtherCqOnce) {
  has_sent();
  cq->arm(false);
  arm_receives(1);
  write_arrives();
  EXPECT_EQ(events.events, 1);
}

TEST_F(WriteWakes, NotBeforeTheWholeWriteIsPlaced) {
  has_sent();
  cq->arm(false);
  write_arrives(false);
  EXPECT_EQ(events.events, 0);
}

TEST_F(WriteWakes, NobodyWhoDidNotArm) {
  has_sent();
  write_arrives();
  EXPECT_EQ(events.events, 0);
}

TEST_F(WriteWakes, NobodyWhoWaitsForSolicitedCompletions) {
  has_sent();
  cq->arm(true);
  write_arrives();
  EXPECT_EQ(events.events, 0);
}

TEST_F(WriteWakes, NobodyWhoHasACompletionToCome) {
  cq->arm(false);
  ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND)), 0);
  write_arrives();
  EXPECT_EQ(events.events, 0);
}

TEST_F(WriteWakes, ASleeperWhoseSendsAreUnsignaled) {
  cq->arm(false);
  ASSERT_EQ(machine.post(SendWr(IBV_WR_SEND).flags(0)), 0);
  write_arrives();
  EXPECT_EQ(events.events, 1);
}

TEST_F(WriteWakes, NobodyWhoWaitsForReceivesOnTheSameCq) {
  machine.connection->shared.recv_cq = cq.get();
  has_sent();
  cq->arm(false);
  write_arrives();
  EXPECT_EQ(events.events, 0);
}

}  // namespace
}  // namespace uiw::test
