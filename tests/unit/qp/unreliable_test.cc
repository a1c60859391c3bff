// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Unreliable service: what cannot be delivered is dropped and counted, and what comes behind it is
// delivered as if it had not been there.
#include <gtest/gtest.h>

#include <cerrno>

#include "qp/peer_hints.h"
#include "support/direct_placement.h"
#include "support/scene.h"
#include "support/segments.h"
#include "support/window.h"

namespace uiw::test {
namespace {

using qp::Loss;
using qp::RxStatus;
using Takers = queue::ReceiveQueue::Takers;

constexpr uint8_t kWrite = 0, kSend = 3, kImmediate = 8;
constexpr auto kUnreliable = core::Service::kUnreliable;

// The peer's stream, with MSNs as a peer counts them that is told nothing.
class Unreliable : public testing::Test {
 protected:
  Unreliable() {
    options.service = kUnreliable;
    options.immediates = true;
    options.wait_for_receive = true;  // which it must not do
  }
  ~Unreliable() override { inbox.reset(); }
  void start() {
    inbox.reset();
    msn_ = 1;
    m = std::make_unique<Machine>(options);
    inbox = std::make_unique<Buffer>(m->memory, 100'000);
  }
  RxStatus feed(const Octets& ulpdu) { return m->feed(fpdu(ulpdu, options.crc)); }
  RxStatus feed_all(const std::vector<Octets>& ulpdus) {
    for (const Octets& ulpdu : ulpdus) {
      const RxStatus status = feed(ulpdu);
      if (status != RxStatus::kOk) return status;
    }
    return RxStatus::kOk;
  }
  Octets send(const Octets& payload) { return untagged(kSend, 0, msn_++, 0, payload); }
  std::vector<Octets> send_cut(const Octets& payload) {
    return untagged_segments(kSend, msn_++, payload, 1000);
  }
  Octets immediate(uint8_t value) {
    return untagged(kImmediate, 0, msn_++, 0, Octets{0, 0, 0, 0, 0, 0, 0, value});
  }
  static Octets write(uint32_t stag, uint64_t to, const Octets& payload, bool last = true) {
    return tagged(kWrite, stag, to, payload, last);
  }
  void receive(uint64_t id, size_t size = 1000) {
    ASSERT_EQ(m->receive(RecvWr({inbox->sge(0, size)}, id)), 0);
  }
  // Only this Send, which comes next, has completed a receive.
  void expect_delivered(uint64_t id, const Octets& payload) {
    ASSERT_EQ(feed(send(payload)), RxStatus::kOk);
    const std::vector<ibv_wc> got = m->received();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(got[0].opcode, IBV_WC_RECV);
    EXPECT_EQ(got[0].wr_id, id);
    EXPECT_EQ(got[0].byte_len, payload.size());
    EXPECT_EQ(got[0].wc_flags, 0u);
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), inbox->data()));
    EXPECT_TRUE(m->rx().at_boundary());
  }
  void expect_lost(Loss why, uint64_t count) {
    for (const Loss each : {Loss::kNoReceive, Loss::kTooLong, Loss::kNoAccess, Loss::kNoPeer})
      EXPECT_EQ(m->connection->shared.losses.of(each), each == why ? count : 0)
          << static_cast<int>(each);
  }

  MachineOptions options;
  std::unique_ptr<Machine> m;
  std::unique_ptr<Buffer> inbox;

 private:
  uint32_t msn_ = 1;
};

TEST_F(Unreliable, SendsWithoutAReceiveAreDropped) {
  start();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(feed(send(pattern(100))), RxStatus::kOk);
  ASSERT_EQ(feed(send({})), RxStatus::kOk);
  EXPECT_TRUE(m->rx().at_boundary());
  receive(7);
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kNoReceive, 4);
}

// A receive that is posted meanwhile is not for the rest of it.
TEST_F(Unreliable, TheRestOfADroppedSendGoesNowhere) {
  start();
  const std::vector<Octets> segments = send_cut(pattern(3000));
  ASSERT_EQ(feed(segments[0]), RxStatus::kOk);
  receive(7);
  ASSERT_EQ(feed_all({segments.begin() + 1, segments.end()}), RxStatus::kOk);
  EXPECT_EQ(m->received().size(), 0u);
  EXPECT_TRUE(inbox->content() == Octets(inbox->size()));
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kNoReceive, 1);
}

TEST_F(Unreliable, ImmediateDataWithoutAReceiveIsDropped) {
  start();
  Buffer target(m->memory, 100);
  ASSERT_EQ(feed(write(target.stag(), target.start(), pattern(100))), RxStatus::kOk);
  ASSERT_EQ(feed(immediate(1)), RxStatus::kOk);
  EXPECT_TRUE(target.content() == pattern(100)) << "the Write itself needs none";
  receive(7);
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kNoReceive, 1);
}

// The hint before a Send with immediate is for that Send.
TEST_F(Unreliable, TheImmediateOfADroppedSendIsDropped) {
  start();
  ASSERT_EQ(feed(write(1, qp::immediate_hint_offset(5), {})), RxStatus::kOk);
  ASSERT_EQ(feed(send(pattern(10))), RxStatus::kOk);
  receive(7);
  expect_delivered(7, pattern(50, 1));
}

TEST_F(Unreliable, WritesToWhatThePeerMayNotWriteToAreDropped) {
  start();
  Buffer target(m->memory, 100), readable(m->memory, 100, mem::kRemoteRead),
      foreign(m->memory, 100, kAllAccess, kOtherPd), gone(m->memory, 100),
      end(m->memory, 100, kAllAccess, kPd, ~uint64_t{0} - 120);
  const uint32_t gone_stag = gone.stag();
  gone.deregister();
  const Octets payload = pattern(60);
  const Octets writes[] = {
      write(target.stag() ^ 1, target.start(), payload),
      write(0, target.start(), payload),
      write(gone_stag, gone.start(), payload),
      write(readable.stag(), readable.start(), payload),
      write(foreign.stag(), foreign.start(), payload),
      write(target.stag(), target.start() + 41, payload),
      write(target.stag(), target.start() - 1, payload),
      write(end.stag(), ~uint64_t{0} - 10, payload),
  };
  for (const Octets& each : writes) ASSERT_EQ(feed(each), RxStatus::kOk);
  m->connection->shared.remote_rights = IBV_ACCESS_LOCAL_WRITE;
  ASSERT_EQ(feed(write(target.stag(), target.start(), payload)), RxStatus::kOk);
  for (const Buffer* each : {&target, &readable, &foreign, &gone, &end})
    EXPECT_TRUE(each->content() == Octets(100));
  expect_lost(Loss::kNoAccess, std::size(writes) + 1);
  m->connection->shared.remote_rights = ~0u;
  ASSERT_EQ(feed(write(target.stag(), target.start(), payload)), RxStatus::kOk);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), target.data()));
  receive(7);
  expect_delivered(7, pattern(50, 1));
}

TEST_F(Unreliable, AWriteIsDroppedFromTheBadSegmentOn) {
  start();
  Buffer target(m->memory, 2000);
  const auto segment = [&](size_t at, bool last) {
    return write(target.stag(), target.start() + at, Octets(500, 9), last);
  };
  ASSERT_EQ(feed_all({segment(0, false), segment(1800, false), segment(1000, false),
                      segment(1500, true)}),
            RxStatus::kOk);
  Octets expected(2000);
  std::fill_n(expected.begin(), 500, uint8_t{9});
  EXPECT_TRUE(target.content() == expected);
  expect_lost(Loss::kNoAccess, 1);
  EXPECT_FALSE(m->rx().mid_message());
  ASSERT_EQ(feed(segment(1000, true)), RxStatus::kOk);
  EXPECT_EQ(target.data()[1000], 9);
}

TEST_F(Unreliable, TheImmediateOfADroppedWriteCompletesNothing) {
  start();
  Buffer target(m->memory, 100);
  receive(7);
  receive(8);
  ASSERT_EQ(feed_all({write(target.stag() ^ 1, target.start(), pattern(10)), immediate(1)}),
            RxStatus::kOk);
  EXPECT_EQ(m->received().size(), 0u);
  ASSERT_EQ(feed_all({write(target.stag(), target.start(), pattern(10)), immediate(2)}),
            RxStatus::kOk);
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].wr_id, 7u);
  EXPECT_EQ(got[0].imm_data, __builtin_bswap32(2));
  EXPECT_EQ(got[0].byte_len, 10u);
  expect_delivered(8, pattern(50, 1));
  expect_lost(Loss::kNoAccess, 1);
}

// A Write without immediate that was dropped, and a Write with immediate of no bytes.
TEST_F(Unreliable, AnImmediateOfAnotherWriteIsDelivered) {
  start();
  receive(7);
  receive(8);
  const Octets bad = write(0, 0, pattern(10));
  ASSERT_EQ(feed_all({bad, write(0, 0, {}), immediate(3)}), RxStatus::kOk);
  ASSERT_EQ(feed_all({bad, send(pattern(5)), immediate(4)}), RxStatus::kOk);
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 2u) << "and of Immediate Data behind no Write there is no receive left";
  EXPECT_EQ(got[0].imm_data, __builtin_bswap32(3));
  EXPECT_EQ(got[1].byte_len, 5u);
  EXPECT_EQ(m->connection->shared.losses.of(Loss::kNoReceive), 1u);
  EXPECT_EQ(m->connection->shared.losses.of(Loss::kNoAccess), 2u);
}

// The whole of it fits into a receive that is posted behind.
TEST_F(Unreliable, AReceiveThatIsTooShortServesTheNextMessage) {
  start();
  for (const bool in_segments : {false, true}) {
    receive(7, in_segments ? 1500 : 100);
    receive(8, 5000);
    if (in_segments)
      ASSERT_EQ(feed_all(send_cut(pattern(3000))), RxStatus::kOk);
    else
      ASSERT_EQ(feed(send(pattern(101))), RxStatus::kOk);
    EXPECT_EQ(m->received().size(), 0u);
    expect_delivered(7, pattern(50, 1));
    expect_delivered(8, pattern(200, 2));
  }
  expect_lost(Loss::kTooLong, 2);
}

// What others have taken meanwhile came behind it.
TEST_F(Unreliable, ASharedReceiveThatIsTooShortCompletesWithAnError) {
  options.takers = Takers::kMany;
  start();
  receive(7, 100);
  receive(8, 100);
  ASSERT_EQ(feed(send(pattern(101))), RxStatus::kOk);
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].wr_id, 7u);
  EXPECT_EQ(got[0].status, IBV_WC_LOC_LEN_ERR);
  expect_delivered(8, pattern(50, 1));
  expect_lost(Loss::kTooLong, 1);
}

// Those are not the message's fault: the program named memory that is none.
TEST_F(Unreliable, AReceiveOfBadMemoryIsTheProgramsError) {
  start();
  ASSERT_EQ(m->receive(RecvWr({{0x1000, 100, 0x77}}, 7)), 0);
  EXPECT_EQ(feed(send(pattern(10))), RxStatus::kFault);
  EXPECT_EQ(m->rx().fault().blame, qp::RxFault::Blame::kProgram);
  const std::vector<ibv_wc> got = m->received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, IBV_WC_LOC_PROT_ERR);
}

// What breaks the rules of the protocol ends the connection, as ever; and the receive of a message
// that came in part stays posted.
TEST_F(Unreliable, WhatBreaksTheRulesIsAFault) {
  for (const bool dropping : {false, true}) {
    start();
    if (!dropping) receive(7);
    const Octets first = untagged(kSend, 0, 1, 0, pattern(10), false);
    const Octets wrong[] = {untagged(kSend, 0, 3, 0, pattern(10)),   // a message is missing
                            untagged(kSend, 1, 1, 10, pattern(10)),  // another queue
                            untagged(0xf, 0, 1, 10, pattern(10)),    // no opcode
                            write(1, 1, pattern(10))};               // and another version
    for (const Octets& each : wrong) {
      ASSERT_EQ(feed(first), RxStatus::kOk);
      Octets ulpdu = each;
      if (&each == &wrong[3]) ulpdu[1] ^= 0x40;
      EXPECT_EQ(feed(ulpdu), RxStatus::kFault);
      EXPECT_EQ(m->rx().fault().blame, qp::RxFault::Blame::kPeer);
      EXPECT_EQ(m->received().size(), 0u);
      EXPECT_EQ(m->receives->count(), dropping ? 0u : 1u);
      m->rx().end_receive(IBV_WC_GENERAL_ERR, core::Cause::kMessageCutOff);
      EXPECT_EQ(m->received().size(), 0u);
      start();
      if (!dropping) receive(7);
    }
  }
}

// Large segments without CRC, fed piece by piece or received where they belong.
class UnreliableByParts : public Unreliable {
 protected:
  static constexpr size_t kSize = 40'001;
  UnreliableByParts() { options.crc = false; }
  RxStatus feed_by_parts(const Octets& ulpdu) {
    const Octets octets = fpdu(ulpdu, false);
    for (size_t at = 0; at < octets.size();) {
      const size_t size = std::min<size_t>(at == 0 ? 100 : 15'000, octets.size() - at);
      const core::Bytes part{octets.data() + at, size};
      const RxStatus status = at % 200 ? m->feed(part) : receive_directly(m->rx(), part);
      if (status != RxStatus::kOk) return status;
      at += size;
    }
    return RxStatus::kOk;
  }
};

TEST_F(UnreliableByParts, ASendWithoutAReceive) {
  start();
  ASSERT_EQ(feed_by_parts(send(pattern(kSize))), RxStatus::kOk);
  EXPECT_TRUE(m->rx().at_boundary());
  receive(7);
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kNoReceive, 1);
}

TEST_F(UnreliableByParts, ASendThatIsTooLong) {
  start();
  receive(7, kSize - 1);
  ASSERT_EQ(feed_by_parts(send(pattern(kSize))), RxStatus::kOk);
  EXPECT_EQ(m->received().size(), 0u);
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kTooLong, 1);
}

TEST_F(UnreliableByParts, AWriteWithoutTheRight) {
  start();
  Buffer target(m->memory, kSize, mem::kRemoteRead);
  ASSERT_EQ(feed_by_parts(write(target.stag(), target.start(), pattern(kSize))), RxStatus::kOk);
  EXPECT_TRUE(target.content() == Octets(kSize));
  EXPECT_TRUE(m->rx().at_boundary());
  receive(7);
  ASSERT_EQ(feed(immediate(1)), RxStatus::kOk);
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kNoAccess, 1);
}

TEST_F(UnreliableByParts, AWriteToMemoryThatIsDeregisteredMeanwhile) {
  start();
  Buffer target(m->memory, kSize);
  const Octets octets = fpdu(write(target.stag(), target.start(), pattern(kSize)), false);
  const size_t half = octets.size() / 2;
  ASSERT_EQ(m->feed({octets.data(), half}), RxStatus::kOk);
  target.deregister();
  Octets before = target.content();
  qp::DirectPlacement placement;
  EXPECT_FALSE(m->rx().plan_placement(placement));
  ASSERT_EQ(m->feed({octets.data() + half, 100}), RxStatus::kOk);
  EXPECT_FALSE(m->rx().plan_placement(placement));
  ASSERT_EQ(m->feed({octets.data() + half + 100, octets.size() - half - 100}), RxStatus::kOk);
  EXPECT_TRUE(target.content() == before);
  EXPECT_EQ(before[10], pattern(kSize)[10]);
  EXPECT_TRUE(m->rx().at_boundary());
  receive(7);
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kNoAccess, 1);
}

// Segments are received where they are expected before their headers are seen; by then the right is
// gone.
TEST_F(UnreliableByParts, ARightThatGoesWhileSegmentsAreReceived) {
  options.long_fpdus = true;
  start();
  constexpr size_t kSegment = 20'000;
  Buffer target(m->memory, 5 * kSegment);
  const Octets content = pattern(5 * kSegment);
  ASSERT_EQ(feed(write(kSegment, qp::length_hint_offset({5 * kSegment, kSegment}), {})),
            RxStatus::kOk);
  Octets octets;
  for (const Octets& each :
       tagged_segments(kWrite, target.stag(), target.start(), content, kSegment + 14)) {
    const Octets whole = fpdu(each, false);
    octets.insert(octets.end(), whole.begin(), whole.end());
  }
  ASSERT_EQ(m->feed({octets.data(), 200}), RxStatus::kOk);
  qp::DirectPlacement placement;
  ASSERT_TRUE(m->rx().plan_placement(placement));
  size_t placed = 0;
  for (size_t i = 0; i < placement.count; ++i) {
    std::memcpy(placement.pieces[i].iov_base, octets.data() + 200 + placed,
                placement.pieces[i].iov_len);
    placed += placement.pieces[i].iov_len;
  }
  ASSERT_GT(placed, 3 * kSegment);
  m->connection->shared.remote_rights = 0;
  ASSERT_EQ(m->rx().placed_directly(placement, placed), RxStatus::kOk);
  ASSERT_EQ(m->feed({octets.data() + 200 + placed, octets.size() - 200 - placed}), RxStatus::kOk);
  EXPECT_TRUE(m->rx().at_boundary());
  receive(7);
  ASSERT_EQ(feed(immediate(1)), RxStatus::kOk);
  expect_delivered(7, pattern(50, 1));
  expect_lost(Loss::kNoAccess, 1);
}

TEST_F(Unreliable, HasNoRequestsThatAreAnsweredOrInvalidateAtThePeer) {
  start();
  Buffer from(m->memory, 100);
  const std::vector<ibv_sge> sges{from.sge(0, 8)};
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                     IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_LOCAL_INV})
    EXPECT_EQ(m->post(SendWr(opcode, sges).to(0x1000, 5)), 0) << opcode;
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
                                     IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV, IBV_WR_TSO})
    EXPECT_EQ(m->post(SendWr(opcode, sges).to(0x1000, 5)), EINVAL) << opcode;
}

// Without a peer: requests complete in order, as if they had been sent, and what this end does by
// itself is done.
TEST_F(Unreliable, WhatIsDiscardedCompletes) {
  start();
  Buffer from(m->memory, pattern(100), kBindable);
  Window window(m->memory);
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  m->tx().fill();  // begun, and nobody takes it
  ASSERT_EQ(m->post(SendWr(IBV_WR_RDMA_WRITE_WITH_IMM, {from.sge()}, 1).to(0x1000, 5)), 0);
  ASSERT_EQ(m->post(window.bind(from, 0, 50, 0, 2)), 0);
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from.sge()}, 3).flags(0)), 0);
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND_WITH_IMM, {}, 4)), 0);
  m->tx().drop_pieces();
  m->tx().discard(m->connection->shared);
  const std::vector<ibv_wc> done = m->sent();
  ASSERT_EQ(done.size(), 4u);
  for (size_t i = 0; i < done.size(); ++i) {
    EXPECT_EQ(done[i].wr_id, i < 3 ? i : 4);
    EXPECT_EQ(done[i].status, IBV_WC_SUCCESS);
  }
  EXPECT_TRUE(window.bound());
  expect_lost(Loss::kNoPeer, 4);
  EXPECT_FALSE(m->tx().fault().raised);
}

TEST_F(Unreliable, WhatIsWrongHereIsAnErrorAlsoWithoutAPeer) {
  start();
  Buffer from(m->memory, pattern(100));
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {{from.start(), 10, from.stag() ^ 1}}, 1)), 0);
  ASSERT_EQ(m->post(SendWr(IBV_WR_SEND, {from.sge()}, 2)), 0);
  m->tx().discard(m->connection->shared);
  EXPECT_TRUE(m->tx().fault().raised);
  m->tx().flush(m->connection->shared);
  const std::vector<ibv_wc> done = m->sent();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(done[2].status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace uiw::test
