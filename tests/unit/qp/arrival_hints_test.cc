// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A Send that answers a message does not overtake the acknowledgement of that message: the program
// at the peer may post the receive for it only when the message is complete.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "qp/peer_hints.h"
#include "support/machine.h"

namespace uiw::test {
namespace {

constexpr uint8_t kReadRequest = 1, kReadResponse = 2, kSend = 3, kHint = 0xff;
using Opcodes = std::vector<uint8_t>;

class ArrivalHints : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) m.receive(RecvWr({target.sge()}));
  }
  void deliver() {
    ASSERT_EQ(m.feed(fpdu(untagged(kSend, 0, ++sends, 0, pattern(10)))), qp::RxStatus::kOk);
  }
  void ask(uint32_t size) {
    const Octets request = read_request(0xc0, 0, size, target.stag(), target.start());
    ASSERT_EQ(m.feed(fpdu(untagged(kReadRequest, 1, ++requests, 0, request))), qp::RxStatus::kOk);
  }
  void post() { ASSERT_EQ(m.post(SendWr(IBV_WR_SEND, {target.sge()}, 0)), 0); }
  // Of an arrival hint kHint.
  Opcodes go() {
    Opcodes out;
    for (const Octets& ulpdu : ulpdus_of(m.transmit())) {
      const bool is_hint = ulpdu.size() == 14 && core::load_be32(&ulpdu[6]) == qp::kArrivalHintTag;
      out.push_back(is_hint ? kHint : ulpdu.at(1) & 0xf);
    }
    return out;
  }

  Machine m{MachineOptions{.ird = 8, .acknowledged = true}};
  Buffer target{m.memory, pattern(100)};
  uint32_t sends = 0, requests = 0;
};

TEST_F(ArrivalHints, GoBeforeAnAnswerToWhatThePeerHasNotAskedFor) {
  deliver();
  post();
  EXPECT_EQ(go(), (Opcodes{kHint, kSend, kReadRequest}));
}

TEST_F(ArrivalHints, AreNotNeededBehindAnAnswerToThePeersQuestion) {
  deliver();
  ask(0);
  post();
  EXPECT_EQ(go(), (Opcodes{kReadResponse, kSend, kReadRequest}));
}

// A Read of bytes is a question, too, but its answer takes turns with Sends.
TEST_F(ArrivalHints, GoWhereASendMayOvertakeTheAnswerToARead) {
  ask(8);
  deliver();
  ask(8);
  post();
  EXPECT_EQ(go(), (Opcodes{kReadResponse, kHint, kReadResponse, kSend, kReadRequest}));
}

TEST_F(ArrivalHints, WhatAnAnswerHasAcknowledgedIsNotToldAgain) {
  deliver();
  ask(8);
  EXPECT_EQ(go(), Opcodes{kReadResponse});
  post();
  EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
}

// The answer to an earlier question says nothing about a message that came behind it.
TEST_F(ArrivalHints, GoBehindTheAnswerToAnEarlierQuestion) {
  deliver();
  ask(0);
  deliver();
  post();
  EXPECT_EQ(go(), (Opcodes{kReadResponse, kHint, kSend, kReadRequest}));
}

TEST_F(ArrivalHints, WhatAHintHasToldAnOlderQuestionDoesNotTakeBack) {
  ask(8);
  ask(8);
  deliver();
  post();
  EXPECT_EQ(go(), (Opcodes{kReadResponse, kHint, kReadResponse, kSend, kReadRequest}));
  post();
  EXPECT_EQ(go(), (Opcodes{kSend, kReadRequest}));
}

// A process that ends leaves once the peer has asked and no answer is due.
TEST_F(ArrivalHints, AnAnswerIsDueBeforeItsQuestionIsKnownToHaveCome) {
  constexpr int kQuestions = 100'000;
  std::atomic<int> waits{0}, seen{0};
  const qp::Shared& shared = m.connection->shared;
  std::thread leaves([&] {
    for (int i = 0; i < kQuestions; seen = ++i) {
      while (!shared.expects_question()) std::this_thread::yield();
      for (waits = i + 1; shared.expects_question();) continue;
      EXPECT_NE(shared.inbound_requests.size(), 0u) << "question " << i;
    }
  });
  for (int i = 0; i < kQuestions; ++i) {
    m.receive(RecvWr({target.sge()}));
    deliver();
    while (waits <= i) std::this_thread::yield();
    ask(0);
    while (seen <= i) std::this_thread::yield();
    go();
    m.received();
  }
  leaves.join();
}

}  // namespace
}  // namespace uiw::test
