// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What both sides are told when something is wrong (conformance 3.4): completions, then the event,
// then the end of the connection.
#include <sstream>

#include "sim/media.h"

namespace uiw::test {
namespace {

using Statuses = std::vector<ibv_wc_status>;
using Events = std::vector<ibv_event_type>;
constexpr auto kOk = IBV_WC_SUCCESS, kFlush = IBV_WC_WR_FLUSH_ERR;

class Error : public Behaviour {
 protected:
  // Two receives on each side, to be flushed.
  void post_receives() {
    for (End* end : {a, b}) {
      receives.push_back(std::make_unique<Buffer>(end->memory, 64));
      for (uint64_t id = 0; id < 2; ++id)
        ASSERT_EQ(end->receive(RecvWr({receives.back()->sge(id * 32, 32)}, id)), 0);
    }
  }
  void expect_flushed_receives(End* end, size_t first = 0) {
    const std::vector<ibv_wc> got = end->received();
    ASSERT_EQ(got.size(), 2u);
    for (size_t i = first; i < 2; ++i) EXPECT_EQ(got[i].status, kFlush);
    expect_in_order(got);
  }
  // After the end everything that is posted is flushed, signaled or not.
  void expect_posts_to_flush(End* end) {
    const size_t sends = end->sent_count(), receives_before = end->received_count();
    for (uint64_t id = 0; id < 3; ++id) {
      ASSERT_EQ(end->post(SendWr(IBV_WR_SEND, {}, 900 + id).flags(0)), 0);
      ASSERT_EQ(end->receive(RecvWr({}, 800 + id)), 0);
    }
    ASSERT_REACHED(end->sent_count() == sends + 3 && end->received_count() == receives_before + 3);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(end->sent()[sends + i].status, kFlush);
      EXPECT_EQ(end->sent()[sends + i].wr_id, 900 + i);
      EXPECT_EQ(end->received()[receives_before + i].status, kFlush);
      EXPECT_EQ(end->received()[receives_before + i].wr_id, 800 + i);
    }
  }
  // Nothing completes after the event, and the end of the connection comes last.
  void expect_order(End* end) {
    const std::vector<Notice> all = end->notices();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back().kind, Notice::kEnded);
    const size_t completions = end->sent_count() + end->received_count();
    for (const Notice& n : all)
      if (n.kind != Notice::kFirstFpdu) {
        EXPECT_EQ(n.completions, completions);
      }
  }

  std::vector<std::unique_ptr<Buffer>> receives;
};

// --- remote access errors ---

enum class Wrong { kStag, kEnd, kStart, kRights, kDomain, kWrap };
constexpr Wrong kAllWrongs[] = {Wrong::kStag,   Wrong::kEnd,    Wrong::kStart,
                                Wrong::kRights, Wrong::kDomain, Wrong::kWrap};

struct Target {
  explicit Target(mem::Table& memory, Wrong wrong, bool is_read)
      : good(memory, pattern(64, 1)),
        sealed(memory, pattern(64, 2),
               is_read ? mem::kLocalWrite | mem::kRemoteWrite : uint32_t{mem::kRemoteRead}),
        foreign(memory, pattern(64, 3), kAllAccess, kOtherPd) {
    address = good.start();
    stag = good.stag();
    switch (wrong) {
      case Wrong::kStag:
        stag ^= 0x1;
        break;
      case Wrong::kEnd:
        address += 57;
        break;
      case Wrong::kStart:
        address -= 1;
        break;
      case Wrong::kRights:
        stag = sealed.stag(), address = sealed.start();
        break;
      case Wrong::kDomain:
        stag = foreign.stag(), address = foreign.start();
        break;
      case Wrong::kWrap:
        address = ~0ull - 3;
        break;
    }
  }
  Buffer good, sealed, foreign;
  uint64_t address = 0;
  uint32_t stag = 0;
};

TEST_P(Error, BadWrites) {
  for (Wrong wrong : kAllWrongs) {
    SCOPED_TRACE(static_cast<int>(wrong));
    receives.clear();
    connect();
    post_receives();
    Target target(b->memory, wrong, false);
    Buffer from(a->memory, pattern(8, 9)), sink(a->memory, 8);
    // Behind it something that cannot complete without an answer.
    ASSERT_EQ(
        a->post_all({SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, 0).to(target.address, target.stag),
                     SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 1)
                         .to(target.good.start(), target.good.stag())}),
        0);
    ASSERT_TRUE(both_ended());
    const Statuses got = statuses(a->sent());
    // RFC 5040 5.5(9): the Write may have completed before the peer refused it.
    if (got == Statuses{kOk, kFlush}) {
      EXPECT_EQ(a->async_events(), Events{IBV_EVENT_QP_FATAL});
    } else {
      EXPECT_EQ(got, (Statuses{IBV_WC_REM_ACCESS_ERR, kFlush}));
      EXPECT_EQ(a->async_events(), Events{});
    }
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(a->end_error(), EPROTO);
    EXPECT_EQ(b->end_error(), EPROTO);
    expect_flushed_receives(a);
    expect_flushed_receives(b);
    expect_order(a);
    expect_order(b);
    EXPECT_TRUE(target.good.content() == pattern(64, 1));
    EXPECT_TRUE(target.sealed.content() == pattern(64, 2));
    EXPECT_TRUE(target.foreign.content() == pattern(64, 3));
    expect_posts_to_flush(a);
    expect_posts_to_flush(b);
  }
}

TEST_P(Error, BadReads) {
  for (Wrong wrong : kAllWrongs) {
    SCOPED_TRACE(static_cast<int>(wrong));
    receives.clear();
    connect();
    post_receives();
    Target target(b->memory, wrong, true);
    Buffer sink(a->memory, 8);
    ASSERT_EQ(
        a->post_all(
            {SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(target.address, target.stag).flags(0),
             SendWr(IBV_WR_SEND, {}, 1)}),
        0);
    ASSERT_TRUE(both_ended());
    EXPECT_EQ(statuses(a->sent()), (Statuses{IBV_WC_REM_ACCESS_ERR, kFlush}));
    EXPECT_EQ(a->async_events(), Events{});  // its completion tells
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
    EXPECT_EQ(a->end_error(), EPROTO);
    EXPECT_EQ(b->end_error(), EPROTO);
    expect_flushed_receives(a);
    expect_flushed_receives(b);
    expect_order(a);
    expect_order(b);
    EXPECT_TRUE(sink.content() == Octets(8));
  }
}

TEST_P(Error, ASendThatIsTooLong) {
  connect();
  post_receives();
  Buffer from(a->memory, pattern(33));
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(b->received()), (Statuses{IBV_WC_LOC_LEN_ERR, kFlush}));
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_FATAL});
  expect_flushed_receives(a);
  expect_order(a);
  expect_order(b);
}

TEST_P(Error, AReceiveWithABadKey) {
  connect();
  Buffer from(a->memory, pattern(33)), to(b->memory, 100);
  ASSERT_EQ(b->receive(RecvWr({{to.start(), 100, to.stag() ^ 1}}, 0)), 0);
  ASSERT_EQ(b->receive(RecvWr({to.sge()}, 1)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(b->received()), (Statuses{IBV_WC_LOC_PROT_ERR, kFlush}));
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
  expect_order(b);
  EXPECT_EQ(a->async_events(), Events{IBV_EVENT_QP_FATAL});
  EXPECT_TRUE(to.content() == Octets(100));
}

TEST_P(Error, AReadWhoseSinkGoesWhileItIsAnswered) {
  connect({.rtr = mpa::Rtr::kNone}, {.rtr = mpa::Rtr::kNone});
  Buffer sink(a->memory, 8), other(a->memory, 8), to(a->memory, 8), source(b->memory, pattern(8));
  ASSERT_EQ(a->receive(RecvWr({to.sge()}, 0)), 0);
  // The answer waits behind a Send of the peer, which waits for a second receive.
  ASSERT_EQ(b->receive(RecvWr({}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {}, 0)), 0);
  ASSERT_REACHED(b->received_count() == 1);
  ASSERT_EQ(
      b->post_all({SendWr(IBV_WR_SEND, {source.sge()}, 0), SendWr(IBV_WR_SEND, {source.sge()}, 1)}),
      0);
  ASSERT_REACHED(a->received_count() == 1 && b->sent_count() == 2);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {other.sge(0, 4), sink.sge(0, 4)}, 1)
                        .to(source.start(), source.stag())),
            0);
  world->settle();
  sink.deregister();
  ASSERT_EQ(a->receive(RecvWr({to.sge()}, 1)), 0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(a->sent()), (Statuses{kOk, IBV_WC_LOC_PROT_ERR}));
  EXPECT_EQ(statuses(a->received()), (Statuses{kOk, kOk}));
  EXPECT_EQ(a->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_FATAL});
  EXPECT_TRUE(sink.content() == Octets(8));
}

TEST_P(Error, ALocalMistakeComesAfterWhatWasPostedBefore) {
  for (ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    SCOPED_TRACE(opcode);
    connect();
    Buffer from(a->memory, pattern(70000)), to(b->memory, 70000);
    ASSERT_EQ(b->receive(RecvWr({to.sge()}, 0)), 0);
    ASSERT_EQ(a->receive(RecvWr({}, 0)), 0);
    ASSERT_EQ(a->post_all({SendWr(IBV_WR_SEND, {from.sge()}, 0),
                           SendWr(opcode, {from.sge(0, 4), {from.start(), 5, from.stag() ^ 1}}, 1)
                               .to(to.start(), to.stag())
                               .flags(0),
                           SendWr(IBV_WR_SEND, {from.sge()}, 2)}),
              0);
    ASSERT_TRUE(both_ended());
    EXPECT_EQ(statuses(a->sent()), (Statuses{kOk, IBV_WC_LOC_PROT_ERR, kFlush}));
    EXPECT_EQ(statuses(a->received()), Statuses{kFlush});
    EXPECT_EQ(statuses(b->received()), Statuses{kOk});
    EXPECT_TRUE(to.content() == from.content());
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_FATAL});
    EXPECT_EQ(b->end_error(), EPROTO);
    expect_order(a);
    expect_order(b);
  }
}

TEST_P(Error, ModifiedToErrorByTheApplication) {
  connect();
  post_receives();
  Buffer from(a->memory, pattern(1 << 20)), target(b->memory, 1 << 20), shown(b->memory, 1 << 20),
      sink(a->memory, 1 << 20);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(
        a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, i * 2).to(target.start(), target.stag())),
        0);
    ASSERT_EQ(
        a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, i * 2 + 1).to(shown.start(), shown.stag())),
        0);
  }
  a->to_error();
  ASSERT_TRUE(both_ended());
  const std::vector<ibv_wc> done = a->sent();
  ASSERT_EQ(done.size(), 40u);
  expect_in_order(done);
  EXPECT_EQ(done.back().status, kFlush);
  EXPECT_EQ(a->async_events(), Events{});
  EXPECT_EQ(a->end_error(), 0);
  // The stream ended at an FPDU, within a message or not.
  EXPECT_TRUE(b->end_error() == 0 || b->end_error() == ECONNRESET);
  expect_flushed_receives(a);
  expect_flushed_receives(b);
  expect_order(a);
  expect_order(b);
  expect_posts_to_flush(a);
}

// TE-11: the Terminate arrives although its sender has much unread input.
TEST_P(Error, TheTerminateArrivesWhileItsReceiverIsStillSending) {
  connect();
  constexpr size_t kSize = 1 << 20;
  Buffer from(a->memory, pattern(kSize)), target(b->memory, kSize);
  ASSERT_EQ(
      a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge(0, 8)}, 0).to(target.start(), target.stag() ^ 1)),
      0);
  for (uint64_t i = 1; i <= 10; ++i)
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, i).to(target.start(), target.stag())),
              0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(a->end_error(), EPROTO);
  EXPECT_EQ(b->end_error(), EPROTO);
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_ACCESS_ERR});
  const std::vector<ibv_wc> done = a->sent();
  ASSERT_EQ(done.size(), 11u);
  expect_in_order(done);
  for (const ibv_wc& wc : done) {
    EXPECT_TRUE(wc.status == kOk || wc.status == kFlush ||
                (wc.wr_id == 0 && wc.status == IBV_WC_REM_ACCESS_ERR));
  }
  if (done[0].status == kOk) {
    EXPECT_EQ(a->async_events(), Events{IBV_EVENT_QP_FATAL});
  }
  EXPECT_TRUE(target.content() == Octets(kSize));  // nothing behind the mistake was placed
}

// --- no receive ---

TEST_P(Error, ALateReceiveIsWaitedFor) {
  connect();
  Buffer from(a->memory, pattern(100)), to(b->memory, 100);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, i)), 0);
  world->settle();
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(b->received_count(), i);
    ASSERT_EQ(b->receive(RecvWr({to.sge()}, i)), 0);
    ASSERT_REACHED(b->received_count() == i + 1);
    world->settle();
  }
  EXPECT_EQ(statuses(b->received()), (Statuses{kOk, kOk, kOk}));
  a->disconnect();
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(b->end_error(), 0);
}

TEST_P(Error, AReceiveThatNeverComesEndsTheConnection) {
  if (is_tcp()) return;  // takes time: tests/raw
  connect();
  Buffer from(a->memory, pattern(100)), sink(a->memory, 10), source(b->memory, 10);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 1).to(source.start(), source.stag())),
            0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_FATAL});
  EXPECT_EQ(b->end_error(), EPROTO);
  EXPECT_EQ(a->end_error(), EPROTO);
  EXPECT_EQ(a->sent().back().status, kFlush);
}

TEST_P(Error, APeerThatClosesWhileItsSendWaitsLosesNothing) {
  connect();
  Buffer from(a->memory, pattern(100)), to(b->memory, 100);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  ASSERT_REACHED(a->sent_count() == 1);
  a->disconnect();
  world->settle();
  ASSERT_EQ(b->receive(RecvWr({to.sge()}, 0)), 0);
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(statuses(b->received()), Statuses{kOk});
  EXPECT_TRUE(to.content() == from.content());
  EXPECT_EQ(b->async_events(), Events{});
  EXPECT_EQ(b->end_error(), 0);
}

TEST_P(Error, DamagedOctetsEndTheConnection) {
  if (!world->can_corrupt()) return;  // TCP cannot be made to; without CRC nobody would notice
  connect();
  Buffer from(a->memory, pattern(5000)), to(b->memory, 5000 * 8);
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(b->receive(RecvWr({to.sge(i * 5000, 5000)}, i)), 0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, i)), 0);
  }
  ASSERT_REACHED(a->sent_count() >= 1);
  world->corrupt_once();
  // A length that grew may wait for octets that never come; then the close is inside an FPDU.
  a->disconnect();
  ASSERT_TRUE(both_ended());
  for (const ibv_wc& wc : b->received()) {
    if (wc.status != kOk) continue;
    EXPECT_TRUE(std::equal(from.data(), from.data() + 5000, to.data() + wc.wr_id * 5000));
  }
  if (b->end_error() != 0) {
    EXPECT_EQ(b->async_events(), Events{IBV_EVENT_QP_FATAL});
  }
}

}  // namespace

UIWARP_EVERYWHERE(Error, 16);

}  // namespace uiw::test
