// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Two queue pairs that know of each other nothing but GID and number.
#include <gmock/gmock.h>
#include <cstdio>

#include "unit/rendezvous/party.h"

namespace uiw::rendezvous {
namespace {

// Two parties; `ours` is the one that listens, or the one that connects.
struct Sides {
  Sides(engine::Engine& engine, bool we_wait)
      : a(engine),
        b(engine),
        ours((a.name < b.name) == we_wait ? a : b),
        other(&ours == &a ? b : a) {}
  Party a, b;
  Party &ours, &other;
};

class PeerSearches : public OnEngine {
 protected:
  // Both directions carry a message.
  void exchange(Party& a, Party& b) {
    Buffer from_a(a.host.memory, pattern(100, 1)), to_a(a.host.memory, 100);
    Buffer from_b(b.host.memory, pattern(100, 2)), to_b(b.host.memory, 100);
    ASSERT_EQ(a.host.receive(RecvWr({to_a.sge()})), 0);
    ASSERT_EQ(b.host.receive(RecvWr({to_b.sge()})), 0);
    ASSERT_EQ(a.host.post(SendWr(IBV_WR_SEND, {from_a.sge()})), 0);
    ASSERT_EQ(b.host.post(SendWr(IBV_WR_SEND, {from_b.sge()})), 0);
    ASSERT_TRUE(a.wait_for_received(1));
    ASSERT_TRUE(b.wait_for_received(1));
    ASSERT_TRUE(a.wait_for_sent(1));
    ASSERT_TRUE(b.wait_for_sent(1));
    for (Party* party : {&a, &b}) {
      EXPECT_EQ(party->host.received()[0].status, IBV_WC_SUCCESS);
      EXPECT_EQ(party->host.received()[0].byte_len, 100u);
      EXPECT_EQ(party->host.sent()[0].status, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(to_a.content(), from_b.content());
    EXPECT_EQ(to_b.content(), from_a.content());
  }
};

TEST_F(PeerSearches, WhoeverIsReadyFirst) {
  for (const bool smaller_first : {true, false}) {
    Party a(*engine), b(*engine);
    Party& first = (a.name < b.name) == smaller_first ? a : b;
    Party& second = &first == &a ? b : a;
    ASSERT_EQ(first.search_peer(second.name), 0);
    EXPECT_EQ(first.host.state(), IBV_QPS_RTR);
    ASSERT_EQ(first.ready(), 0);
    EXPECT_EQ(first.host.state(), IBV_QPS_RTS);
    ASSERT_EQ(second.search_peer(first.name), 0);
    ASSERT_EQ(second.ready(), 0);
    exchange(a, b);
  }
}

// One of the two stays in RTR, as a program does that only receives.
TEST_F(PeerSearches, OneInRtrAndOneInRts) {
  for (const bool we_wait : {true, false}) {
    for (const bool receiver_first : {true, false}) {
      Sides sides(*engine, we_wait);
      Party &receives = sides.ours, &sends = sides.other;
      Buffer from(sends.host.memory, pattern(100)), to(receives.host.memory, 100);
      if (receiver_first) ASSERT_EQ(receives.search_peer(sends.name), 0);
      ASSERT_EQ(sends.search_peer(receives.name), 0);
      ASSERT_EQ(sends.ready(), 0);
      if (!receiver_first) ASSERT_EQ(receives.search_peer(sends.name), 0);
      ASSERT_EQ(receives.host.receive(RecvWr({to.sge()})), 0);
      ASSERT_EQ(sends.host.post(SendWr(IBV_WR_SEND, {from.sge()})), 0);
      ASSERT_TRUE(receives.wait_for_received(1));
      EXPECT_EQ(receives.host.received()[0].status, IBV_WC_SUCCESS);
      EXPECT_EQ(to.content(), from.content());
      EXPECT_EQ(receives.host.state(), IBV_QPS_RTR);
    }
  }
}

// Nothing is proven to anybody until one of them is in RTS, and then they connect.
TEST_F(PeerSearches, BothInRtrWait) {
  for (const bool waiting_one_first : {true, false}) {
    Sides sides(*engine, waiting_one_first);
    Party &first = sides.ours, &second = sides.other;
    ASSERT_EQ(first.search_peer(second.name), 0);
    ASSERT_EQ(second.search_peer(first.name), 0);
    usleep(20'000);  // time to connect, if they did
    ASSERT_EQ(first.host.state(), IBV_QPS_RTR);
    ASSERT_EQ(first.ready(), 0);
    ASSERT_EQ(second.ready(), 0);
    exchange(first, second);
  }
}

TEST_F(PeerSearches, PsnsOfZeroAreLikeOthers) {
  Party a(*engine), b(*engine);
  a.own_psn = a.peer_psn = b.own_psn = b.peer_psn = 0;
  ASSERT_EQ(a.search_peer(b.name), 0);
  ASSERT_EQ(b.search_peer(a.name), 0);
  ASSERT_EQ(a.ready(), 0);
  ASSERT_EQ(b.ready(), 0);
  exchange(a, b);
}

// As with an adapter, which drops what comes with another PSN: the requests of neither end are
// answered, and here both logs say why.
TEST_F(PeerSearches, PsnsThatDifferFailWhatWasPosted) {
  for (const bool we_wait : {true, false}) {
    Sides sides(*engine, we_wait);
    Party &ours = sides.ours, &other = sides.other;
    ours.own_psn = ours.peer_psn = 0x123456;
    Buffer from_ours(ours.host.memory, pattern(10)), from_other(other.host.memory, pattern(10));
    testing::internal::CaptureStderr();
    ASSERT_EQ(ours.search_peer(other.name), 0);
    ASSERT_EQ(other.search_peer(ours.name), 0);
    for (Party* party : {&ours, &other}) ASSERT_EQ(party->ready(100 * core::kMillisecond), 0);
    ASSERT_EQ(ours.host.post(SendWr(IBV_WR_SEND, {from_ours.sge()})), 0);
    ASSERT_EQ(other.host.post(SendWr(IBV_WR_SEND, {from_other.sge()})), 0);
    for (Party* party : {&ours, &other}) {
      ASSERT_TRUE(party->wait_for_sent(1));
      EXPECT_EQ(party->host.sent()[0].status, IBV_WC_RETRY_EXC_ERR);
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, testing::HasSubstr("who answers as its peer, queue pair "));
    EXPECT_THAT(said, testing::HasSubstr("who comes as its peer, queue pair "));
  }
}

TEST_F(PeerSearches, WhatIsPostedBeforeWaits) {
  Party a(*engine), b(*engine);
  Buffer from(a.host.memory, pattern(5000)), to(b.host.memory, 5000);
  ASSERT_EQ(a.search_peer(b.name), 0);
  ASSERT_EQ(a.host.post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);  // in RTR already
  ASSERT_EQ(a.ready(), 0);
  for (uint64_t i = 1; i < 3; ++i) ASSERT_EQ(a.host.post(SendWr(IBV_WR_SEND, {from.sge()}, i)), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(b.host.receive(RecvWr({to.sge()})), 0);
  EXPECT_TRUE(a.host.sent().empty());
  ASSERT_EQ(b.search_peer(a.name), 0);  // RTR is enough to receive
  ASSERT_TRUE(b.wait_for_received(3));
  ASSERT_TRUE(a.wait_for_sent(3));
  EXPECT_EQ(to.content(), from.content());
  EXPECT_EQ(b.host.state(), IBV_QPS_RTR);
  ASSERT_EQ(b.ready(), 0);
  EXPECT_EQ(b.host.state(), IBV_QPS_RTS);
}

TEST_F(PeerSearches, ManyOnOnePortInAnyOrder) {
  std::vector<std::unique_ptr<Party>> left, right;
  for (int i = 0; i < 20; ++i) {
    left.push_back(std::make_unique<Party>(*engine));
    right.push_back(std::make_unique<Party>(*engine));
  }
  // Some come to a listener that is open already, but not expected there yet.
  for (int i = 0; i < 20; ++i) {
    Party& one = i % 2 ? *left[i] : *right[i];
    Party& other = i % 2 ? *right[i] : *left[i];
    ASSERT_EQ(one.search_peer(other.name), 0);
  }
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ((i % 2 ? right[i] : left[i])->search_peer((i % 2 ? left[i] : right[i])->name), 0);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(left[i]->ready(), 0);
    ASSERT_EQ(right[i]->ready(), 0);
    exchange(*left[i], *right[i]);
  }
}

TEST_F(PeerSearches, AQueuePairWithItself) {
  Party self(*engine);
  Buffer from(self.host.memory, pattern(70000)), to(self.host.memory, 70000),
      copy(self.host.memory, 70000);
  ASSERT_EQ(self.search_peer(self.name), 0);
  ASSERT_EQ(self.ready(), 0);
  ASSERT_EQ(self.host.receive(RecvWr({to.sge()})), 0);
  ASSERT_EQ(self.host.post(SendWr(IBV_WR_SEND, {from.sge()}, 1)), 0);
  ASSERT_TRUE(self.wait_for_received(1));
  EXPECT_EQ(self.host.received()[0].byte_len, 70000u);
  EXPECT_EQ(to.content(), from.content());
  ASSERT_EQ(self.host.post(SendWr(IBV_WR_RDMA_READ, {copy.sge()}, 2).to(from.start(), from.stag())),
            0);
  ASSERT_TRUE(self.wait_for_sent(2));
  EXPECT_EQ(self.host.sent()[1].status, IBV_WC_SUCCESS);
  EXPECT_EQ(copy.content(), from.content());
}

TEST_F(PeerSearches, APeerThatNeverComesFailsWhatWasPosted) {
  for (const bool we_wait : {true, false}) {
    Sides sides(*engine, we_wait);
    Party &ours = sides.ours, &absent = sides.other;
    Buffer from(ours.host.memory, pattern(10));
    ASSERT_EQ(ours.search_peer(absent.name), 0);
    ASSERT_EQ(ours.ready(20 * core::kMillisecond), 0);
    ASSERT_EQ(ours.host.post(SendWr(IBV_WR_SEND, {from.sge()}, 1)), 0);
    ASSERT_EQ(ours.host.post(SendWr(IBV_WR_SEND, {from.sge()}, 2)), 0);
    ASSERT_TRUE(ours.wait_for_sent(2));
    EXPECT_EQ(ours.host.sent()[0].status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(ours.host.sent()[0].wr_id, 1u);
    EXPECT_EQ(ours.host.sent()[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(ours.host.state(), IBV_QPS_ERR);
    EXPECT_TRUE(ours.host.events().empty());
  }
}

// The log says who was awaited, and where, at which end it may lie and what to look at.
TEST_F(PeerSearches, APeerThatNeverComesIsNamed) {
  for (const bool we_wait : {true, false}) {
    Sides sides(*engine, we_wait);
    Party &ours = sides.ours, &absent = sides.other;
    Buffer from(ours.host.memory, pattern(10));
    testing::internal::CaptureStderr();
    ASSERT_EQ(ours.search_peer(absent.name), 0);
    ASSERT_EQ(ours.ready(core::kMillisecond), 0);
    ASSERT_EQ(ours.host.post(SendWr(IBV_WR_SEND, {from.sge()}, 1)), 0);
    EXPECT_TRUE(ours.wait_for_sent(1));
    const std::string said = testing::internal::GetCapturedStderr();
    char number[16];
    std::snprintf(number, sizeof number, "0x%06x", absent.name.qp_num);
    EXPECT_THAT(said,
                testing::HasSubstr(std::string("peer, queue pair ") + number + " at 127.0.0.1, "));
    EXPECT_THAT(said,
                testing::HasSubstr("TCP port " +
                                   std::to_string(port_of((we_wait ? ours : absent).name.qp_num)) +
                                   (we_wait ? " here" : ": nobody listens there")));
  }
}

TEST_F(PeerSearches, NobodyIsBlamedWhileNothingIsPosted) {
  Party a(*engine), b(*engine);
  testing::internal::CaptureStderr();
  ASSERT_EQ(a.search_peer(b.name), 0);
  ASSERT_EQ(a.ready(core::kMillisecond), 0);
  usleep(50'000);  // many times that
  EXPECT_EQ(a.host.modify(IBV_QPS_ERR), 0);
  usleep(50'000);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(PeerSearches, WhatIsPostedLateWaitsAsLong) {
  constexpr core::Nanoseconds kTimeLimit = 400 * core::kMillisecond;
  Party a(*engine), b(*engine);
  Buffer from(a.host.memory, pattern(10));
  ASSERT_EQ(a.search_peer(b.name), 0);
  ASSERT_EQ(a.ready(kTimeLimit), 0);
  usleep(300'000);
  const core::Nanoseconds posted = core::now();
  ASSERT_EQ(a.host.post(SendWr(IBV_WR_SEND, {from.sge()}, 1)), 0);
  ASSERT_TRUE(a.wait_for_sent(1));
  EXPECT_EQ(a.host.sent()[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GE(core::now() - posted, kTimeLimit);
}

// Between RTR and RTS of the one that stays.
TEST_F(PeerSearches, APeerThatDiesBeforeWeAreReady) {
  for (const bool we_wait : {true, false}) {
    Sides sides(*engine, we_wait);
    Party &ours = sides.ours, &dying = sides.other;
    Buffer from(dying.host.memory, pattern(10)), to(ours.host.memory, 10);
    ASSERT_EQ(ours.search_peer(dying.name), 0);
    ASSERT_EQ(dying.search_peer(ours.name), 0);
    ASSERT_EQ(ours.host.receive(RecvWr({to.sge()}, 6)), 0);
    ASSERT_EQ(ours.host.receive(RecvWr({to.sge()}, 7)), 0);
    ASSERT_EQ(dying.ready(), 0);
    ASSERT_EQ(dying.host.post(SendWr(IBV_WR_SEND, {from.sge()})), 0);
    ASSERT_TRUE(ours.wait_for_received(1));
    dying.leave();
    ASSERT_EQ(ours.ready(core::kMillisecond), 0);
    // Some are still taken by TCP.
    ASSERT_TRUE(wait_until([&] {
      const size_t before = ours.host.sent().size();
      EXPECT_EQ(ours.host.post(SendWr(IBV_WR_SEND, {to.sge()}, 8)), 0);
      return ours.wait_for_sent(before + 1) &&
             ours.host.sent().back().status == IBV_WC_RETRY_EXC_ERR;
    }));
    ASSERT_TRUE(ours.wait_for_received(2));
    EXPECT_EQ(ours.host.received()[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(ours.host.received()[1].wr_id, 7u);
    EXPECT_EQ(ours.host.state(), IBV_QPS_ERR);
  }
}

TEST_F(PeerSearches, NobodyNoticesThatThePeerHasGoneUntilHeWantsSomething) {
  Party a(*engine);
  auto b = std::make_unique<Party>(*engine);
  ASSERT_EQ(a.search_peer(b->name), 0);
  ASSERT_EQ(b->search_peer(a.name), 0);
  ASSERT_EQ(a.ready(), 0);
  ASSERT_EQ(b->ready(), 0);
  exchange(a, *b);
  Buffer memory(a.host.memory, pattern(10));
  ASSERT_EQ(a.host.receive(RecvWr({memory.sge()}, 7)), 0);
  b.reset();
  // The engine has seen the end when the connection's observer was told; a later Send finds out.
  core::Nanoseconds posted = 0;
  ASSERT_TRUE(wait_until([&] {
    posted = core::now();
    EXPECT_EQ(a.host.state(), IBV_QPS_RTS);
    EXPECT_EQ(a.host.received().size(), 1u);
    EXPECT_EQ(a.host.post(SendWr(IBV_WR_SEND, {memory.sge()}, 8)), 0);
    return wait_until([&] { return a.host.sent().size() > 1; }) &&
           a.host.sent().back().status != IBV_WC_SUCCESS;
  }));
  // One that TCP still took completes; the next is told that nobody answers, and not at once: a
  // program that posts more than it needs is to end before that. A second, by the engine's time,
  // which stands still during a turn.
  EXPECT_EQ(a.host.sent().back().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GE(core::now() - posted, core::kSecond / 2);
  ASSERT_TRUE(a.wait_for_received(2));
  EXPECT_EQ(a.host.received()[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(a.host.state(), IBV_QPS_ERR);
  EXPECT_TRUE(a.host.events().empty());
}

TEST_F(PeerSearches, OnlyInInit) {
  Party a(*engine), b(*engine);
  ASSERT_EQ(a.search_peer(b.name), 0);
  EXPECT_EQ(a.search_peer(b.name), EINVAL);
  Party c(*engine);
  ASSERT_EQ(c.host.modify(IBV_QPS_RESET), 0);
  EXPECT_EQ(c.search_peer(b.name), EINVAL);
  // A number that is not of this process's ports cannot be reached.
  Party d(*engine);
  const Name real = std::exchange(d.name, Name{loopback_gid(), 77});
  testing::internal::CaptureStderr();
  EXPECT_EQ(d.search_peer(b.name), EADDRNOTAVAIL);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("widen UIWARP_PORTS"));
  d.name = real;
}

TEST_F(PeerSearches, GoingBeforeThePeerComes) {
  Party a(*engine), b(*engine);
  ASSERT_EQ(a.search_peer(b.name), 0);
  ASSERT_EQ(a.ready(), 0);
  a.leave();
  ASSERT_EQ(b.search_peer(a.name), 0);
  ASSERT_EQ(b.ready(), 0);
}

}  // namespace
}  // namespace uiw::rendezvous
