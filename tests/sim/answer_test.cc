// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A peer that answers at once, be it while the thread that sent what it answers is still in the
// kernel: what is answered completes first (doc/protocol.md, "Order that programs can rely on").
#include "sim/media.h"

namespace uiw::test {
namespace {

class Answer : public Behaviour {};

TEST_P(Answer, ComesBehindTheCompletionOfWhatItAnswers) {
  constexpr size_t kRounds = 100;
  connect();
  b->on_received = [&](size_t number) {
    if (number + 1 < kRounds) EXPECT_EQ(b->receive(RecvWr({}, number + 1)), 0);
    EXPECT_EQ(b->post(SendWr(IBV_WR_SEND, {}, number)), 0);
  };
  a->on_received = [this](size_t number) { EXPECT_GT(a->sent_count(), number); };
  ASSERT_EQ(b->receive(RecvWr({}, 0)), 0);
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(a->receive(RecvWr({}, i)), 0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {}, i)), 0);
    ASSERT_REACHED((b->collect(), a->received_count() > i));
  }
}

}  // namespace

UIWARP_EVERYWHERE(Answer, 25);

}  // namespace uiw::test
