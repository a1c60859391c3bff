// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What only the simulator can try: when something happens, to the nanosecond, and what happens when
// a program is quicker than any thread.
#include <gtest/gtest.h>

#include "core/tuning.h"
#include "qp/peer_hints.h"
#include "sim/virtual_time.h"

namespace uiw::test {
namespace {

// The peer takes something in the first third, and then nothing more: the time counts from there.
TEST_P(VirtualTime, ADisconnectEndsSoonAfterTheLastByteMoved) {
  const auto [ours, theirs] = kernel.connect();
  PlainEnd end(*engine, *engine, memory, 100, {});
  end.attach(ours, agreement_of(end.options, true));
  Buffer source(memory, 4 << 20);
  ASSERT_EQ(end.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(0x1000, 0x100)), 0);
  run(kernel.now() + core::kSecond);
  end.disconnect();
  run(kernel.now() + kCloseTimeout / 3);
  std::vector<uint8_t> some(1000);
  const iovec room{some.data(), some.size()};
  ASSERT_GT(kernel.receive(theirs, {&room, 1}), 0);
  run(kernel.now() + core::kMillisecond);
  const core::Nanoseconds moved = kernel.now();
  run(moved + kCloseTimeout * 3 / 4);
  EXPECT_FALSE(end.ended());
  run(moved + kCloseTimeout * 5 / 4 + core::kMillisecond);
  EXPECT_TRUE(end.ended());
  EXPECT_EQ(end.end_error(), ETIMEDOUT);
  end.destroy();
  kernel.close(theirs);
}

// ibv_modify_qp to SQD before the connection stands: what was posted goes out all the same.
TEST_P(VirtualTime, SqdBeforeThePeerIsFoundLosesNothing) {
  Pair pair(*this, 0, {}, {});
  PlainEnd& one = pair.one;
  pair.expect_each_other();
  Buffer source(memory, pattern(5000)), target(pair.other_memory, 5000);
  for (uint64_t i = 0; i < 10; ++i)
    ASSERT_EQ(
        one.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}, i).to(target.start(), target.stag())),
        0);
  ASSERT_EQ(one.modify(IBV_QPS_SQD), 0);
  run(kernel.now() + core::kSecond);
  const bool initiates = GetParam() % 2;
  pair.attach(initiates);
  run(kernel.now() + core::kSecond);
  const auto sent = one.sent();
  ASSERT_EQ(sent.size(), 10u);
  for (const ibv_wc& wc : sent) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(target.content(), source.content());
  pair.destroy();
}

// README, Limits: 100 microseconds at most, also when nobody polls any more.
TEST_P(VirtualTime, WhatWasDeferredLeavesWithin100Microseconds) {
  const auto [ours, theirs] = kernel.connect();
  const int peer = theirs;  // clang 14 captures no structured binding
  PlainEnd end(*engine, *engine, memory, 100, {});
  end.attach(ours, agreement_of(end.options, true));
  run(kernel.now() + core::kMicrosecond);
  Buffer buffer(memory, 8);
  const bool reads = GetParam() % 2;
  const auto post = [&](uint32_t count) {
    const ibv_wr_opcode opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    for (; count > 0; --count)
      ASSERT_EQ(end.post(SendWr(opcode, {buffer.sge()}).to(0x1000, 0x100)), 0);
  };
  std::vector<uint8_t> taken(10000);
  const iovec room{taken.data(), taken.size()};
  const auto take = [&] {  // the window is small
    while (kernel.receive(peer, {&room, 1}) > 0) {
    }
  };
  const auto waits = [&] { return end.state().waits_since() != UINT64_MAX; };
  // The first burst brings the lease of those who poll.
  for (int burst = 0; burst < 10 && !waits(); ++burst) {
    post(core::tuning::kBurst + 2);
    if (waits()) break;
    take();
    run(kernel.now() + 20 * core::kMicrosecond);
  }
  ASSERT_TRUE(waits());
  const auto since = static_cast<core::Nanoseconds>(end.state().waits_since());
  // And what it takes to plan it, and to look, by this clock.
  run(since + 102 * core::kMicrosecond);
  EXPECT_FALSE(waits());
  // Where the window was full for it, it leaves when there is room.
  for (int i = 0; i < 100; ++i, run(kernel.now() + 100 * core::kMicrosecond)) take();
  EXPECT_TRUE(reads || end.state().send_queue->posted() == end.state().send_queue->retired());
  end.destroy();
  kernel.close(theirs);
}

// Acknowledged completions: the peer is asked for what makes no completion, also when nobody polls
// or posts any more. Nothing else would say that it is gone.
TEST_P(VirtualTime, WhatIsUnsignaledIsAskedForAtLast) {
  EndOptions options;
  options.acknowledged = true;
  options.depth = 1024;
  Pair pair(*this, 4096, options, {});
  PlainEnd& one = pair.one;
  pair.attach();
  run(kernel.now() + core::kMicrosecond);
  Buffer source(memory, 8), target(pair.other_memory, 8);
  const session::State& state = one.state();
  const auto is_left = [&] { return state.waiting_acknowledgements.waits_since() != UINT64_MAX; };
  // The first bursts bring the lease of those who poll.
  for (int burst = 0; burst < 50 && !is_left(); ++burst) {
    for (uint32_t i = 0; i < core::tuning::kBurst + 2; ++i)
      ASSERT_EQ(
          one.post(
              SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(target.start(), target.stag()).flags(0)),
          0);
    run(kernel.now() + 120 * core::kMicrosecond);
  }
  ASSERT_TRUE(is_left());
  EXPECT_LT(state.send_queue->retired(), state.send_queue->posted());
  run(kernel.now() + 10 * core::kMillisecond);
  EXPECT_FALSE(is_left());
  EXPECT_EQ(state.send_queue->retired(), state.send_queue->posted());
  pair.destroy();
}

// ibv_dereg_mr waits for what is posted to be sent from the region, and for nothing else.
TEST_P(VirtualTime, WhatIsPostedNeedsItsRegionUntilItIsSent) {
  const auto [ours, theirs] = kernel.connect(4096);
  PlainEnd end(*engine, *engine, memory, 100, {});
  end.attach(ours, agreement_of(end.options, true));
  run(kernel.now() + core::kMicrosecond);
  Buffer first(memory, 4 << 20), second(memory, 8), sink(memory, 8), other(memory, 8);
  if (GetParam() % 2)
    ASSERT_EQ(end.post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}).to(0x1000, 0x100)), 0);
  ASSERT_EQ(end.post(SendWr(IBV_WR_RDMA_WRITE, {first.sge()}).to(0x1000, 0x100)), 0);
  ASSERT_EQ(end.post(SendWr(IBV_WR_SEND, {second.sge()})), 0);
  run(kernel.now() + core::kMillisecond);
  EXPECT_FALSE(end.qp().lets_go_of(first.stag(), false));
  EXPECT_FALSE(end.qp().lets_go_of(second.stag(), false));
  EXPECT_TRUE(end.qp().lets_go_of(sink.stag(), false));
  EXPECT_TRUE(end.qp().lets_go_of(other.stag(), false));
  drain(theirs);
  EXPECT_TRUE(end.qp().lets_go_of(first.stag(), false));
  EXPECT_TRUE(end.qp().lets_go_of(second.stag(), false));
  end.destroy();
  kernel.close(theirs);
}

// What TCP has not taken when the region goes was copied, or fails: the memory is the program's.
TEST_P(VirtualTime, OfARegionThatIsGoneNothingIsRead) {
  const auto [ours, theirs] = kernel.connect(4096);
  PlainEnd end(*engine, *engine, memory, 100, {});
  end.attach(ours, agreement_of(end.options, true));
  run(kernel.now() + core::kMicrosecond);
  constexpr uint8_t kNew = 0x5a;
  const bool is_long = GetParam() % 2;
  Buffer source(memory, is_long ? 4 << 20 : 8000);
  ASSERT_EQ(end.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(0x1000, 0x100)), 0);
  run(kernel.now() + core::kMillisecond);
  ASSERT_TRUE(end.qp().lets_go_of(source.stag(), true));
  std::fill_n(source.data(), source.content().size(), kNew);
  EXPECT_LT(drain(theirs, kNew), 1000) << "more than headers may have";
  ASSERT_EQ(end.sent_count(), 1u);
  EXPECT_EQ(end.sent()[0].status, is_long ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
  end.destroy();
  kernel.close(theirs);
}

// A peer that never asks whether its message has arrived is waited for no longer than promised,
// once for each connection; one that has nothing to ask not at all.
TEST_P(VirtualTime, APeerThatNeverAsksHoldsNobodyUp) {
  EndOptions options;
  options.acknowledged = true;
  Pair pair(*this, 4096, {}, options);
  PlainEnd &one = pair.one, &other = pair.other;
  pair.attach();
  Buffer source(memory, 8), target(pair.other_memory, 8);
  const bool sends = GetParam() % 2;
  ASSERT_EQ(other.receive(RecvWr({target.sge()})), 0);
  if (sends) ASSERT_EQ(one.post(SendWr(IBV_WR_SEND, {source.sge()})), 0);
  run(kernel.now() + core::kMillisecond);
  ASSERT_EQ(other.received_count(), sends ? 1u : 0u);
  const core::Nanoseconds begin = kernel.now();
  ASSERT_EQ(other.modify(IBV_QPS_ERR), 0);
  const core::Nanoseconds took = kernel.now() - begin;
  if (sends) EXPECT_GE(took, core::tuning::kLastQuestion);
  EXPECT_LT(took, (sends ? core::tuning::kLastQuestion : 0) + core::kMillisecond);
  const core::Nanoseconds then = kernel.now();
  other.destroy();
  EXPECT_LT(kernel.now() - then, core::kMillisecond);
  one.destroy();
}

// It is refused, and would get the answers to what it asked before. The program does not wait for
// that when it ends the queue pair itself.
TEST_P(VirtualTime, APeerThatTakesNoAnswersHoldsNoProgramUp) {
  const auto [ours, theirs] = kernel.connect(4096);
  PlainEnd end(*engine, *engine, memory, 100, {});
  const mpa::Agreement agreement = agreement_of(end.options, false);
  end.attach(ours, agreement);
  Buffer source(memory, 1 << 20);
  const Octets asked = read_request(0xc0, 0, 1 << 20, source.stag(), source.start());
  send_all(theirs, fpdu(untagged(1, 1, 1, 0, asked), agreement.crc));
  run(kernel.now() + core::kMillisecond);
  ASSERT_EQ(end.post(SendWr(IBV_WR_SEND, {source.sge(0, 8)})), 0);
  ASSERT_EQ(end.receive(RecvWr()), 0);
  const uint32_t stranger = source.stag() ^ 1;
  send_all(theirs, fpdu(tagged(0, stranger, source.start(), Octets(8)), agreement.crc));
  run(kernel.now() + kCloseTimeout / 2);
  EXPECT_EQ(end.sent_count() + end.received_count(), 0u);
  EXPECT_FALSE(end.ended());
  const core::Nanoseconds begin = kernel.now();
  ASSERT_EQ(end.modify(IBV_QPS_ERR), 0);
  EXPECT_LT(kernel.now() - begin, core::kMillisecond);
  run(kernel.now() + core::kMillisecond);
  EXPECT_EQ(statuses(end.sent()), std::vector{IBV_WC_WR_FLUSH_ERR});
  EXPECT_EQ(statuses(end.received()), std::vector{IBV_WC_WR_FLUSH_ERR});
  end.destroy();
  kernel.close(theirs);
}

// So that it knows although its question came too late.
TEST_P(VirtualTime, APeerThatHasNotAskedIsToldWhatHasArrived) {
  const auto [ours, theirs] = kernel.connect(4096);
  EndOptions options;
  options.acknowledged = true;
  PlainEnd end(*engine, *engine, memory, 100, options);
  const mpa::Agreement agreement = agreement_of(options, false);
  end.attach(ours, agreement);
  Buffer target(memory, 100);
  const uint32_t messages = GetParam() % 3 + 1;
  for (uint32_t msn = 1; msn <= messages; ++msn) {
    ASSERT_EQ(end.receive(RecvWr({target.sge()})), 0);
    send_all(theirs, fpdu(untagged(3, 0, msn, 0, pattern(10)), agreement.crc));
  }
  run(kernel.now() + core::kMillisecond);
  ASSERT_EQ(end.received_count(), messages);
  ASSERT_EQ(end.modify(IBV_QPS_ERR), 0);
  const auto ulpdus = ulpdus_of(take_all(theirs), agreement.crc);
  ASSERT_EQ(ulpdus.size(), 1u);
  const auto hint =
      qp::arrival_hint_of(core::load_be32(&ulpdus[0].at(2)), core::load_be64(&ulpdus[0].at(6)));
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->next_send, messages + 1);
  end.destroy();
  kernel.close(theirs);
}

// A process that is about to end waits until TCP has the answer to its peer's question, not only
// until the question has come.
TEST_P(VirtualTime, NobodyLeavesWhileAnAnswerIsBeingSent) {
  EndOptions options;
  options.acknowledged = true;
  Pair pair(*this, 4096, options, {});
  PlainEnd &one = pair.one, &other = pair.other;
  pair.attach();
  Buffer source(memory, 8), target(pair.other_memory, 8);
  ASSERT_EQ(other.receive(RecvWr({target.sge()})), 0);
  int answers = 0;
  kernel.before_send = [&] {
    if (!other.state().sender.is_running()) return;
    ++answers;
    EXPECT_TRUE(other.qp().leave());
  };
  ASSERT_EQ(one.post(SendWr(IBV_WR_SEND, {source.sge()})), 0);
  run(kernel.now() + core::kMillisecond);
  kernel.before_send = nullptr;
  EXPECT_GT(answers, 0);
  EXPECT_EQ(statuses(one.sent()), std::vector{IBV_WC_SUCCESS});
  EXPECT_FALSE(other.qp().leave());
  pair.destroy();
}

// Whose FIN came first has nothing to wait for: its descriptor is free at once, not after the time
// that a peer has for its FIN.
TEST_P(VirtualTime, ADestroyedConnectionKeepsNoDescriptor) {
  Pair pair(*this, 0, {}, {});
  PlainEnd &one = pair.one, &other = pair.other;
  const bool by_number = GetParam() % 2;
  if (by_number) pair.expect_each_other();
  pair.attach();
  run(kernel.now() + core::kMillisecond);
  EXPECT_EQ(kernel.open_sockets(), 2u);
  one.destroy();
  if (GetParam() % 4 < 2) run(kernel.now() + core::kMillisecond);
  other.destroy();
  run(kernel.now() + core::kMillisecond);
  EXPECT_EQ(kernel.open_sockets(), 0u);
}

// It asks for what was sent before it, as a Read does: nobody waits for another question.
TEST_P(VirtualTime, AnAtomicAsksForWhatWasBeforeIt) {
  EndOptions options;
  options.acknowledged = true;
  Pair pair(*this, 0, {}, options);
  PlainEnd &one = pair.one, &other = pair.other;
  pair.attach();
  Buffer source(memory, 8), target(pair.other_memory, 8);
  const bool reads = GetParam() % 2;
  ASSERT_EQ(one.post(SendWr(IBV_WR_RDMA_WRITE, {source.sge()}).to(target.start(), target.stag())),
            0);
  SendWr asks(reads ? IBV_WR_RDMA_READ : IBV_WR_ATOMIC_FETCH_AND_ADD, {source.sge()});
  if (reads)
    asks.to(target.start(), target.stag());
  else
    asks.atomic(target.start(), target.stag(), 1);
  ASSERT_EQ(one.post(std::move(asks)), 0);
  run(kernel.now() + core::kMillisecond);
  ASSERT_EQ(one.sent_count(), 2u);
  const core::Nanoseconds begin = kernel.now();
  ASSERT_EQ(other.modify(IBV_QPS_ERR), 0);
  EXPECT_LT(kernel.now() - begin, core::kMillisecond);
  other.destroy();
  one.destroy();
}

INSTANTIATE_TEST_SUITE_P(Seeds, VirtualTime, testing::Range(1u, 21u));

}  // namespace
}  // namespace uiw::test
