// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory windows between two ends: granted by a binding, used by the peer, taken back by either.
#include "support/window.h"
#include "sim/media.h"

namespace uiw::test {
namespace {

using Statuses = std::vector<ibv_wc_status>;
using Events = std::vector<ibv_event_type>;
constexpr auto kOk = IBV_WC_SUCCESS, kFlush = IBV_WC_WR_FLUSH_ERR;
constexpr unsigned kReadWrite = mem::kRemoteRead | mem::kRemoteWrite;

class Windowed : public Behaviour {
 protected:
  // The second end lends part of a region to the first.
  void lend(Window& window, const Buffer& region, size_t offset, size_t length, unsigned access) {
    const size_t before = b->sent_count();
    ASSERT_EQ(b->post(window.bind(region, offset, length, access, before)), 0);
    ASSERT_REACHED(b->sent_count() == before + 1);
    ASSERT_EQ(b->sent().back().status, kOk);
    ASSERT_EQ(b->sent().back().opcode, IBV_WC_BIND_MW);
  }
};

TEST_P(Windowed, LentUsedAndGivenBackManyTimes) {
  connect();
  constexpr size_t kSize = 40000, kOffset = 1000;
  const Octets content = pattern(kSize);
  Buffer region(b->memory, kSize + 2 * kOffset, kBindable), from(a->memory, content),
      back(a->memory, kSize), note(b->memory, kSize);
  Window window(b->memory);
  for (uint64_t round = 0; round < 20; ++round) {
    const bool zero_based = round % 2;
    lend(window, region, kOffset, kSize,
         kReadWrite | (zero_based ? uint32_t{mem::kZeroBased} : 0u));
    const uint64_t start = zero_based ? 0 : region.start() + kOffset;
    ASSERT_EQ(b->receive(RecvWr({note.sge()}, round)), 0);
    // The Send, with or without octets of its own, overtakes no Write; the fence makes it wait for
    // the Read.
    ASSERT_EQ(
        a->post_all({SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, round * 3).to(start, window.stag()),
                     SendWr(IBV_WR_RDMA_READ, {back.sge()}, round * 3 + 1).to(start, window.stag()),
                     invalidating(IBV_WR_SEND_WITH_INV, window.stag(),
                                  round % 4 < 2 ? std::vector{from.sge()} : std::vector<ibv_sge>{},
                                  round * 3 + 2)
                         .flags(IBV_SEND_SIGNALED | IBV_SEND_FENCE)}),
        0);
    ASSERT_REACHED(b->received_count() == round + 1 && a->sent_count() == round * 3 + 3);
    const ibv_wc got = b->received().back();
    EXPECT_EQ(got.status, kOk);
    EXPECT_EQ(got.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(got.invalidated_rkey, window.stag());
    EXPECT_FALSE(window.bound());
    EXPECT_TRUE(std::equal(content.begin(), content.end(), region.data() + kOffset));
    EXPECT_TRUE(back.content() == content);
    std::fill_n(region.data() + kOffset, kSize, 0);
  }
  expect_in_order(a->sent());
  EXPECT_EQ(std::count(region.data(), region.data() + region.size(), 0),
            static_cast<long>(region.size()));
  a->disconnect();
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(b->end_error(), 0);
}

// ibv_bind_mw: a Send posted behind the binding may carry the key.
TEST_P(Windowed, TheKeyMayFollowItsBindingAtOnce) {
  connect({.rtr = mpa::Rtr::kWrite});
  Buffer region(b->memory, 64, kBindable), key(b->memory, 4), to(a->memory, 4),
      from(a->memory, pattern(64));
  Window window(b->memory, IBV_MW_TYPE_1);
  ASSERT_EQ(a->receive(RecvWr({to.sge()}, 0)), 0);
  std::vector<SendWr> list = {window.bind(region, 0, 64, kReadWrite, 0),
                              SendWr(IBV_WR_SEND, {key.sge()}, 1)};
  const uint32_t stag = window.stag();
  std::memcpy(key.data(), &stag, 4);
  ASSERT_EQ(b->post_all(list), 0);
  ASSERT_REACHED(a->received_count() == 1);
  uint32_t got;
  std::memcpy(&got, to.data(), 4);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 0).to(region.start(), got)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 1)), 0);
  ASSERT_REACHED(a->sent_count() == 2);
  EXPECT_EQ(statuses(a->sent()), (Statuses{kOk, kOk}));
  EXPECT_TRUE(region.content() == from.content());
}

TEST_P(Windowed, WhatIsNotLentIsNotReached) {
  enum Wrong { kBefore, kBeyond, kRight, kStale, kRegionsOwn };
  for (Wrong wrong : {kBefore, kBeyond, kRight, kStale, kRegionsOwn}) {
    for (ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
      SCOPED_TRACE(testing::Message() << wrong << " by " << opcode);
      connect();
      Buffer region(b->memory, pattern(100), kBindable), mine(a->memory, pattern(8, 3));
      Window window(b->memory);
      const bool write = opcode == IBV_WR_RDMA_WRITE;
      unsigned access = kReadWrite;
      if (wrong == kRight) access = write ? mem::kRemoteRead : mem::kRemoteWrite;
      lend(window, region, 10, 50, access);
      uint64_t to = region.start() + 10;
      uint32_t rkey = window.stag();
      switch (wrong) {
        case kBefore:
          to -= 1;
          break;
        case kBeyond:
          to += 50 - 7;
          break;
        case kRight:
          break;
        case kStale:
          rkey -= 1;
          break;
        case kRegionsOwn:
          rkey = region.stag();
          break;  // it has no remote right itself
      }
      ASSERT_EQ(a->post(SendWr(opcode, {mine.sge()}, 0).to(to, rkey)), 0);
      ASSERT_TRUE(both_ended());
      EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
      EXPECT_EQ(a->end_error(), EPROTO);
      if (!write) {
        EXPECT_EQ(statuses(a->sent()), Statuses{IBV_WC_REM_ACCESS_ERR});
      }
      EXPECT_TRUE(region.content() == pattern(100));
      EXPECT_TRUE(mine.content() == pattern(8, 3));
    }
  }
}

// DV-11, SE-02: the key of one stream is of no use on another.
TEST_P(Windowed, AnotherStreamDoesNotReachIt) {
  for (ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_INV}) {
    SCOPED_TRACE(opcode);
    connect();
    End* const lender = b;
    End* const borrower = a;
    Buffer region(lender->memory, pattern(100), kBindable), mine(borrower->memory, pattern(8, 3));
    Window window(lender->memory);
    lend(window, region, 0, 100, kReadWrite);
    connect();
    ASSERT_EQ(b->receive(RecvWr({}, 0)), 0);
    SendWr wr = opcode == IBV_WR_SEND_WITH_INV
                    ? invalidating(opcode, window.stag())
                    : SendWr(opcode, {mine.sge()}, 0).to(region.start(), window.stag());
    ASSERT_EQ(a->post(wr), 0);
    ASSERT_TRUE(both_ended());
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(statuses(b->received()),
              Statuses{opcode == IBV_WR_SEND_WITH_INV ? IBV_WC_REM_INV_REQ_ERR : kFlush});
    // Its own stream goes on with it.
    ASSERT_EQ(
        borrower->post(
            SendWr(IBV_WR_RDMA_WRITE, {mine.sge()}, 0).to(region.start() + 10, window.stag())),
        0);
    ASSERT_EQ(borrower->post(SendWr(IBV_WR_RDMA_READ, {}, 1)), 0);
    ASSERT_REACHED(borrower->sent_count() == 2);
    Octets expected = pattern(100);
    std::copy_n(mine.data(), 8, expected.begin() + 10);
    EXPECT_TRUE(region.content() == expected);
  }
}

TEST_P(Windowed, OfType1EveryStreamOfTheDomainReaches) {
  connect();
  Buffer region(b->memory, 100, kBindable), mine(a->memory, pattern(8, 3));
  Window window(b->memory, IBV_MW_TYPE_1);
  lend(window, region, 0, 100, kReadWrite);
  connect();
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {mine.sge()}, 0).to(region.start(), window.stag())),
            0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 1)), 0);
  ASSERT_REACHED(a->sent_count() == 2);
  EXPECT_EQ(statuses(a->sent()), (Statuses{kOk, kOk}));
  EXPECT_TRUE(std::equal(mine.data(), mine.data() + 8, region.data()));
}

TEST_P(Windowed, TakenBackByItsLender) {
  for (bool unbind : {false, true}) {
    connect();
    Buffer region(b->memory, 100, kBindable), mine(a->memory, pattern(8, 3));
    Window window(b->memory, unbind ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
    lend(window, region, 0, 100, kReadWrite);
    const uint32_t stag = window.stag();
    EXPECT_EQ(b->memory.remove(region.stag()), EBUSY);
    ASSERT_EQ(b->post(unbind ? window.unbind(1) : invalidating(IBV_WR_LOCAL_INV, stag, {}, 1)), 0);
    ASSERT_REACHED(b->sent_count() == 2);
    EXPECT_EQ(b->sent()[1].opcode, unbind ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV);
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {mine.sge()}, 0).to(region.start(), stag)), 0);
    ASSERT_TRUE(both_ended());
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_TRUE(region.content() == Octets(100));
  }
}

TEST_P(Windowed, ABindingThatCannotBeEndsTheConnection) {
  connect();
  Buffer closed(b->memory, 100), to(a->memory, 8);
  Window window(b->memory);
  ASSERT_EQ(a->receive(RecvWr({to.sge()}, 0)), 0);
  ASSERT_EQ(b->post_all({SendWr(IBV_WR_SEND, {closed.sge(0, 8)}, 0),
                         window.bind(closed, 0, 100, mem::kRemoteRead, 1).flags(0),
                         SendWr(IBV_WR_SEND, {closed.sge(0, 8)}, 2)}),
            0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(b->sent()), (Statuses{kOk, IBV_WC_MW_BIND_ERR, kFlush}));
  EXPECT_EQ(b->sent()[1].opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(statuses(a->received()), Statuses{kOk});
  EXPECT_EQ(a->async_events(), Events{IBV_EVENT_QP_FATAL});
}

// A peer that gives back what it may not: RO-27, RO-28.
TEST_P(Windowed, OnlyWindowsOfTheStreamAreInvalidatedFromRemote) {
  for (bool region_itself : {true, false}) {
    connect();
    Buffer region(b->memory, pattern(100), kBindable | mem::kRemoteRead), to(b->memory, 8);
    Window window(b->memory, IBV_MW_TYPE_1);
    lend(window, region, 0, 100, kReadWrite);
    for (uint64_t id = 0; id < 2; ++id) ASSERT_EQ(b->receive(RecvWr({to.sge()}, id)), 0);
    ASSERT_EQ(
        a->post(invalidating(IBV_WR_SEND_WITH_INV, region_itself ? region.stag() : window.stag())),
        0);
    ASSERT_TRUE(both_ended());
    EXPECT_EQ(statuses(b->received()), (Statuses{IBV_WC_REM_INV_REQ_ERR, kFlush}));
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(b->end_error(), EPROTO);
    EXPECT_EQ(a->end_error(), EPROTO);
    EXPECT_TRUE(b->memory.find(region.stag()));
    EXPECT_TRUE(window.bound());
  }
}

TEST_P(Windowed, AQueuePairTakesItsWindowsAlong) {
  connect();
  Buffer region(b->memory, 100, kBindable);
  Window own(b->memory), shared(b->memory, IBV_MW_TYPE_1);
  lend(own, region, 0, 100, kReadWrite);
  lend(shared, region, 0, 100, kReadWrite);
  b->destroy();
  EXPECT_FALSE(own.bound());
  EXPECT_TRUE(shared.bound());
  // Nothing of the old binding is left: another stream may have the window.
  connect();
  lend(own, region, 0, 100, kReadWrite);
  EXPECT_TRUE(own.bound());
}

}  // namespace

UIWARP_EVERYWHERE(Windowed, 16);

}  // namespace uiw::test
