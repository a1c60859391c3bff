// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The answer to an empty Read, by which the peer knows that its message has come: it goes with what
// the program answers, or soon after when the program says nothing. Which of them may be left:
// qp/acknowledgements_test.cc.
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include "unit/session/leased.h"

namespace uiw::test {
namespace {

constexpr uint8_t kReadRequest = 1;
constexpr size_t kAnswer = 20, kSend = 24;  // bytes on the wire

class LeftAnswers : public Leased {
 protected:
  // Pollers receive, and have received a message with an empty Read behind it. True: the answer was
  // left. The engine's pace decides whether they do, hence the loops of the callers.
  bool left() {
    start_lent();
    questions = 0;
    return ask_behind_a_message() && arrived() == 0;
  }
  bool ask_behind_a_message() {
    EXPECT_EQ(host->receive(RecvWr({}, msn)), 0);
    EXPECT_TRUE(peer->send(concat(next_send(), question())));
    EXPECT_TRUE(wait_until([&] { return poll_once(), received.size() == msn; }));
    return !HasFailure();
  }
  // An empty poll would send what was left.
  void poll_once() {
    ibv_wc wc;
    if (host->recv_cq->poll(1, &wc) == 1) received.push_back(wc);
  }
  Octets question() {
    ++questions;
    return fpdu(untagged(kReadRequest, 1, questions, 0, read_request(questions, 0, 0, 1, 0)));
  }
  size_t arrived() {
    int bytes = 0;
    EXPECT_EQ(ioctl(peer->fd(), FIONREAD, &bytes), 0);
    return static_cast<size_t>(bytes);
  }
  // `then` is tried until an answer was left before it.
  template <class Then>
  void when_left(Then&& then) {
    ASSERT_TRUE(wait_until([&] {
      if (!left()) return HasFailure();
      then();
      return true;
    }));
  }

  uint32_t questions = 0;
};

TEST_F(LeftAnswers, GoWithTheAnswerOfTheProgram) {
  when_left([&] {
    ASSERT_EQ(host->post(SendWr(IBV_WR_SEND)), 0);
    EXPECT_TRUE(wait_until([&] { return arrived() == kAnswer + kSend; }));
  });
}

TEST_F(LeftAnswers, GoWithTheNextEmptyPoll) {
  when_left([&] { EXPECT_TRUE(wait_until([&] { return poll_once(), arrived() == kAnswer; })); });
}

TEST_F(LeftAnswers, GoWhenNobodyPollsAnyMore) {
  when_left([&] { EXPECT_TRUE(wait_until([&] { return arrived() == kAnswer; })); });
}

TEST_F(LeftAnswers, GoWhenTheQueueIsArmed) {
  when_left([&] {
    host->recv_cq->arm(false);
    EXPECT_TRUE(wait_until([&] { return arrived() == kAnswer; }));
  });
}

// Polls go on, but always find something.
TEST_F(LeftAnswers, GoByTheEngineWhenNoPollIsEmpty) {
  when_left([&] {
    Stranger stranger;
    host->recv_cq->push(stranger.completion(), false);
    const Finder finder(*host->recv_cq);
    EXPECT_TRUE(wait_until([&] { return arrived() == kAnswer; }));
  });
}

TEST_F(LeftAnswers, GoBeforeAnyEnd) {
  for (const Host::Ending how : Host::kEndings) {
    SCOPED_TRACE(static_cast<int>(how));
    when_left([&] {
      host->end_by(how);
      EXPECT_EQ(peer->receive(kAnswer).size(), kAnswer);
      peer->close();
      host->destroy();
    });
  }
}

}  // namespace
}  // namespace uiw::test
