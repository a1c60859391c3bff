// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Acknowledged completions over whole connections: what has completed is at the peer, and what the
// peer refuses completes by name, with all before it well and all behind it flushed.
#include <algorithm>
#include <cerrno>
#include <memory>

#include "sim/media.h"

namespace uiw::test {
namespace {

class Acknowledged : public Behaviour {
 protected:
  void connect(EndOptions first = {}, EndOptions second = {}) {
    first.acknowledged = true;
    Behaviour::connect(first, second);
  }
  void send(Buffer& from, uint64_t id) {
    ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, id)), 0);
  }
  void write(Buffer& from, uint64_t to, uint32_t rkey, uint64_t id) {
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, id).to(to, rkey)), 0);
  }
  void receive(Buffer& into, uint64_t id) { ASSERT_EQ(b->receive(RecvWr({into.sge()}, id)), 0); }
  // Until b's has ended, too.
  std::vector<ibv_wc_status> statuses_at_the_end(size_t count) {
    EXPECT_TRUE(run_until([&] { return a->ended() && b->ended() && a->sent_count() == count; }));
    return statuses(a->sent());
  }
};

TEST_P(Acknowledged, ASendHasCompletedAReceive) {
  connect();
  constexpr size_t kMessages = 100;
  Buffer from(a->memory, pattern(3000)), into(b->memory, 3000);
  for (uint64_t id = 0; id < kMessages; ++id) receive(into, id);
  for (uint64_t id = 0; id < kMessages; ++id) send(from, id);
  EXPECT_TRUE(run_until([&] {
    const size_t sent = a->sent_count();
    EXPECT_LE(sent, b->received_count());
    return sent == kMessages;
  }));
  expect_in_order(a->sent());
}

TEST_P(Acknowledged, AWriteIsInPlace) {
  if (is_tcp()) return;  // looks at memory that another thread writes
  connect();
  Buffer from(a->memory, pattern(50'000)), to(b->memory, 50'000);
  for (uint64_t id = 0; id < 20; ++id) {
    from.data()[49'999] = static_cast<uint8_t>(id + 100);
    write(from, to.start(), to.stag(), id);
    ASSERT_REACHED(a->sent_count() == id + 1);
    EXPECT_TRUE(to.content() == from.content());
  }
}

// As on adapters, whose acknowledgement comes before the program's answer.
TEST_P(Acknowledged, AnAnswerIsReceivedBehindTheCompletionOfItsQuestion) {
  {
    constexpr size_t kDepth = 16, kMessages = 400;
    connect({.depth = 2 * kDepth}, {.depth = 2 * kDepth, .acknowledged = true});
    Buffer of_a(a->memory, pattern(50)), of_b(b->memory, pattern(50));
    Buffer at_a(a->memory, 50), at_b(b->memory, 50);
    size_t posted = 0, answered = 0;
    for (size_t i = 0; i < kDepth; ++i) {
      ASSERT_EQ(a->receive(RecvWr({at_a.sge()}, i)), 0);
      receive(at_b, i);
    }
    EXPECT_TRUE(run_until([&] {
      // Answers first: what has completed by then is more in truth.
      const size_t answers = a->received_count();
      EXPECT_LE(answers, a->sent_count());
      for (; posted < std::min(answers + kDepth, kMessages); ++posted) {
        if (posted >= kDepth) EXPECT_EQ(a->receive(RecvWr({at_a.sge()}, posted)), 0);
        send(of_a, posted);
      }
      for (const size_t got = b->received_count(); answered < got; ++answered) {
        receive(at_b, kDepth + answered);
        EXPECT_EQ(b->post(SendWr(IBV_WR_SEND, {of_b.sge()}, answered)), 0);
      }
      return answers == kMessages;
    }));
  }
}

// The answer to a Write is the peer's Send that the program posts when it sees the bytes.
TEST_P(Acknowledged, AnAnswerIsReceivedBehindTheCompletionOfWrites) {
  if (is_tcp()) return;  // looks at memory that another thread writes
  connect({.depth = 64}, {.depth = 64, .acknowledged = true});
  Buffer from(a->memory, Octets(1, 1)), to(b->memory, 200), of_b(b->memory, pattern(50)),
      at_a(a->memory, 50);
  for (uint64_t id = 0; id < 40; ++id) ASSERT_EQ(a->receive(RecvWr({at_a.sge()}, id)), 0);
  for (uint64_t id = 0; id < 40; ++id) write(from, to.start() + id, to.stag(), id);
  size_t answered = 0;
  EXPECT_TRUE(run_until([&] {
    EXPECT_LE(a->received_count(), a->sent_count());
    for (; answered < 40 && to.content()[answered] == 1; ++answered)
      EXPECT_EQ(b->post(SendWr(IBV_WR_SEND, {of_b.sge()}, answered)), 0);
    return a->received_count() == 40;
  }));
}

// Nothing else brings the answers back: neither side has anything to say.
TEST_P(Acknowledged, ManyWritesToAPeerThatDoesNothing) {
  connect({.ord = 1, .depth = 256});
  Buffer from(a->memory, pattern(2000)), to(b->memory, 2000);
  for (uint64_t id = 0; id < 256; ++id) write(from, to.start(), to.stag(), id);
  ASSERT_REACHED(a->sent_count() == 256);
  expect_in_order(a->sent());
}

TEST_P(Acknowledged, BothSidesAtOnceBesideReadsAndAtomics) {
  connect({.ird = 2, .ord = 2}, {.ird = 2, .ord = 2, .acknowledged = true});
  Buffer at_a(a->memory, 1000), at_b(b->memory, 1000), counter(b->memory, 8);
  Buffer of_a(a->memory, pattern(1000)), of_b(b->memory, pattern(1000));
  Buffer sink(a->memory, 1000), answer(a->memory, 8);
  for (uint64_t id = 0; id < 60; ++id) {
    switch (id % 3) {
      case 0:
        write(of_a, at_b.start(), at_b.stag(), id);
        break;
      case 1:
        ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, id).to(of_b.start(), of_b.stag())),
                  0);
        break;
      default:
        ASSERT_EQ(a->post(SendWr(IBV_WR_ATOMIC_FETCH_AND_ADD, {answer.sge()}, id)
                              .atomic(counter.start(), counter.stag(), 1)),
                  0);
    }
    ASSERT_EQ(b->post(SendWr(IBV_WR_RDMA_WRITE, {of_b.sge()}, id).to(at_a.start(), at_a.stag())),
              0);
  }
  ASSERT_REACHED(a->sent_count() == 60 && b->sent_count() == 60);
  expect_in_order(a->sent());
  expect_in_order(b->sent());
}

TEST_P(Acknowledged, AWriteThatIsRefusedCompletesByName) {
  connect();
  Buffer from(a->memory, pattern(100)), to(b->memory, 100);
  for (uint64_t id = 0; id < 10; ++id)
    write(from, to.start(), id == 6 ? to.stag() ^ 0x100 : to.stag(), id);
  const auto is = statuses_at_the_end(10);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(is[i], i < 6    ? IBV_WC_SUCCESS
                     : i == 6 ? IBV_WC_REM_ACCESS_ERR
                              : IBV_WC_WR_FLUSH_ERR)
        << i;
}

// Several requests fit what the peer says of the one that it refused.
TEST_P(Acknowledged, AWriteThatIsRefusedBehindSomeToTheSamePlace) {
  if (is_tcp()) return;  // looks at memory that another thread writes
  connect({}, {.acknowledged = true});
  constexpr size_t kWrites = 40, kSettled = 20;
  Octets numbers(kWrites);
  for (size_t i = 0; i < kWrites; ++i) numbers[i] = static_cast<uint8_t>(i + 1);
  Buffer from(a->memory, numbers), to(b->memory, 1);
  for (uint64_t id = 0; id < kWrites; ++id) {
    if (id == kSettled) ASSERT_REACHED(to.data()[0] == kSettled);
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(id, 1)}, id).to(to.start(), to.stag())),
              0);
  }
  to.deregister();
  const auto is = statuses_at_the_end(kWrites);
  const size_t placed = to.data()[0];
  for (size_t i = 0; i < kWrites; ++i)
    EXPECT_EQ(is[i], i < placed    ? IBV_WC_SUCCESS
                     : i == placed ? IBV_WC_REM_ACCESS_ERR
                                   : IBV_WC_WR_FLUSH_ERR)
        << i;
}

TEST_P(Acknowledged, AWriteThatIsRefusedBehindTheEndOfAnother) {
  connect({}, {.acknowledged = true});
  Buffer from(a->memory, pattern(100)), to(b->memory, 100);
  write(from, to.start(), to.stag(), 0);
  write(from, to.start() + 100, to.stag(), 1);
  write(from, to.start(), to.stag(), 2);
  EXPECT_EQ(statuses_at_the_end(3),
            (std::vector{IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR}));
}

// The peer answers what it was asked before the message that it refuses, as before a NAK.
TEST_P(Acknowledged, AWriteThatIsRefusedBehindReadsAndAnAtomic) {
  for (const bool peer_acknowledged : {false, true}) {
    connect({}, {.acknowledged = peer_acknowledged});
    constexpr size_t kReads = 4, kSize = 200'000;
    Buffer from(a->memory, pattern(100)), to(b->memory, pattern(kSize)), word(a->memory, 8);
    std::vector<std::unique_ptr<Buffer>> sinks;
    for (size_t i = 0; i < kReads; ++i) {
      sinks.push_back(std::make_unique<Buffer>(a->memory, kSize));
      ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sinks[i]->sge()}, i).to(to.start(), to.stag())),
                0);
    }
    const auto add = IBV_WR_ATOMIC_FETCH_AND_ADD;
    ASSERT_EQ(
        a->post(SendWr(add, {word.sge()}, kReads).atomic(to.start() + kSize - 8, to.stag(), 1)), 0);
    write(from, to.start(), to.stag() ^ 0x100, kReads + 1);
    write(from, to.start(), to.stag(), kReads + 2);
    const auto is = statuses_at_the_end(kReads + 3);
    for (size_t i = 0; i < is.size(); ++i)
      EXPECT_EQ(is[i], i < kReads + 1    ? IBV_WC_SUCCESS
                       : i == kReads + 1 ? IBV_WC_REM_ACCESS_ERR
                                         : IBV_WC_WR_FLUSH_ERR)
          << i;
    for (const auto& sink : sinks)
      EXPECT_TRUE(std::equal(sink->data(), sink->data() + kSize - 8, pattern(kSize).data()));
  }
}

TEST_P(Acknowledged, ASendForWhichThereIsNoReceive) {
  if (is_tcp()) return;  // waits for a minute
  connect();
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  for (uint64_t id = 0; id < 2; ++id) receive(into, id);
  for (uint64_t id = 0; id < 4; ++id) send(from, id);
  EXPECT_EQ(statuses_at_the_end(4), (std::vector{IBV_WC_SUCCESS, IBV_WC_SUCCESS,
                                                 IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR}));
}

TEST_P(Acknowledged, ASendThatIsLongerThanItsReceive) {
  connect();
  Buffer from(a->memory, pattern(100)), into(b->memory, 100), short_one(b->memory, 99);
  receive(into, 0);
  receive(short_one, 1);
  for (uint64_t id = 0; id < 3; ++id) send(from, id);
  EXPECT_EQ(statuses_at_the_end(3),
            (std::vector{IBV_WC_SUCCESS, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_EQ(statuses(b->received()), (std::vector{IBV_WC_SUCCESS, IBV_WC_LOC_LEN_ERR}));
}

TEST_P(Acknowledged, ASendWhoseReceiveNamesMemoryThatIsGone) {
  connect();
  Buffer from(a->memory, pattern(100)), into(b->memory, 100), gone(b->memory, 100);
  receive(into, 0);
  receive(gone, 1);
  gone.deregister();
  for (uint64_t id = 0; id < 3; ++id) send(from, id);
  EXPECT_EQ(statuses_at_the_end(3),
            (std::vector{IBV_WC_SUCCESS, IBV_WC_REM_OP_ERR, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_EQ(statuses(b->received()), (std::vector{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR}));
}

TEST_P(Acknowledged, AMistakeOfThisEndComesAfterWhatWasPostedBefore) {
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    for (const bool both : {false, true}) {
      SCOPED_TRACE(opcode);
      connect({}, {.acknowledged = both});
      Buffer from(a->memory, pattern(70'000)), to(b->memory, 70'000), into(b->memory, 70'000);
      receive(into, 0);
      ASSERT_EQ(
          a->post_all(
              {SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 0).to(to.start(), to.stag()).flags(0),
               SendWr(IBV_WR_SEND, {from.sge()}, 1),
               SendWr(opcode, {{from.start(), 5, from.stag() ^ 1}}, 2).to(to.start(), to.stag()),
               SendWr(IBV_WR_SEND, {from.sge()}, 3)}),
          0);
      EXPECT_EQ(statuses_at_the_end(3),
                (std::vector{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR}));
      EXPECT_EQ(statuses(b->received()), std::vector{IBV_WC_SUCCESS});
      EXPECT_TRUE(to.content() == from.content());
    }
  }
}

// The peer has not posted the receive for what came before.
TEST_P(Acknowledged, AMistakeOfThisEndWaitsForTheReceiveOfWhatWasPostedBefore) {
  if (is_tcp()) return;  // settles in virtual time only
  connect({}, {.acknowledged = true});
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  send(from, 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {{from.start(), 5, from.stag() ^ 1}}, 1)), 0);
  world->settle();
  EXPECT_EQ(a->sent_count(), 0u);
  receive(into, 0);
  EXPECT_EQ(statuses_at_the_end(2), (std::vector{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR}));
  EXPECT_EQ(statuses(b->received()), std::vector{IBV_WC_SUCCESS});
}

// As InfiniBand's responder acknowledges what came before the one that it answers by an RNR NAK. A
// program may post receives only when it has seen those complete.
TEST_P(Acknowledged, WhatWasReceivedCompletesWhileALaterSendWaitsForItsReceive) {
  if (is_tcp()) return;  // settles in virtual time only
  connect({}, {.acknowledged = true});
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  for (uint64_t id = 0; id < 3; ++id) receive(into, id);
  for (uint64_t id = 0; id < 6; ++id) send(from, id);
  world->settle();
  EXPECT_EQ(b->received_count(), 3u);
  EXPECT_EQ(a->sent_count(), 3u);
  receive(into, 3);
  world->settle();
  EXPECT_EQ(a->sent_count(), 4u);
  for (uint64_t id = 4; id < 6; ++id) receive(into, id);
  EXPECT_TRUE(run_until([&] { return a->sent_count() == 6; }));
  expect_in_order(a->sent());
}

// A connection that breaks says nothing of what was on its way.
TEST_P(Acknowledged, WhatABreakLeavesUnknownIsFlushed) {
  connect();
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  for (uint64_t id = 0; id < 20; ++id) receive(into, id);
  for (uint64_t id = 0; id < 20; ++id) send(from, id);
  b->reset_connection();
  const auto is = statuses_at_the_end(20);
  const auto first = std::find(is.begin(), is.end(), IBV_WC_WR_FLUSH_ERR);
  EXPECT_TRUE(std::all_of(is.begin(), first, [](auto s) { return s == IBV_WC_SUCCESS; }));
  EXPECT_TRUE(std::all_of(first, is.end(), [](auto s) { return s == IBV_WC_WR_FLUSH_ERR; }));
  EXPECT_LE(first - is.begin(), static_cast<long>(b->received_count()));
}

TEST_P(Acknowledged, ADisconnectWaitsForAllOfThem) {
  connect();
  Buffer from(a->memory, pattern(100)), into(b->memory, 100);
  for (uint64_t id = 0; id < 20; ++id) receive(into, id);
  for (uint64_t id = 0; id < 20; ++id) send(from, id);
  a->disconnect();
  EXPECT_EQ(statuses_at_the_end(20), std::vector(20, IBV_WC_SUCCESS));
  EXPECT_EQ(a->end_error(), 0);
}

// It has seen its completions, and ends before all of the peer's questions have come.
TEST_P(Acknowledged, AReceiverThatGoesWithAllItGotHasAcknowledgedIt) {
  for (const bool destroys : {false, true}) {
    connect({.ord = 1}, {.acknowledged = true});
    constexpr size_t kMessages = 10;
    Buffer from(a->memory, pattern(100)), into(b->memory, 100);
    for (uint64_t id = 0; id < kMessages; ++id) receive(into, id);
    for (uint64_t id = 0; id < kMessages; ++id) {
      send(from, id);
      if (id % 3 == 0) ASSERT_REACHED(b->received_count() > id);  // the next is another batch
    }
    ASSERT_REACHED(b->received_count() == kMessages);
    if (destroys)
      b->destroy();
    else
      b->to_error();
    ASSERT_REACHED(a->sent_count() == kMessages);
    EXPECT_EQ(statuses(a->sent()), std::vector(kMessages, IBV_WC_SUCCESS)) << destroys;
  }
}

TEST_P(Acknowledged, AReceiverThatDisconnectsWithAllItGotHasAcknowledgedIt) {
  connect({.ord = 1}, {.acknowledged = true});
  Buffer from(a->memory, pattern(100)), to(b->memory, 100), into(b->memory, 100);
  receive(into, 0);
  for (uint64_t id = 0; id < 9; ++id) write(from, to.start(), to.stag(), id);
  send(from, 9);
  ASSERT_REACHED(b->received_count() == 1);
  b->disconnect();
  EXPECT_EQ(statuses_at_the_end(10), std::vector(10, IBV_WC_SUCCESS));
  EXPECT_EQ(b->end_error(), 0);
}

}  // namespace

UIWARP_EVERYWHERE(Acknowledged, 40);

}  // namespace uiw::test
