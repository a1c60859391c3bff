// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How connections end without a protocol error.
#include "sim/media.h"

namespace uiw::test {
namespace {

using Events = std::vector<ibv_event_type>;

class Close : public Behaviour {};

size_t flushed(const std::vector<ibv_wc>& completions) {
  size_t count = 0;
  for (const ibv_wc& wc : completions) count += wc.status == IBV_WC_WR_FLUSH_ERR;
  return count;
}

TEST_P(Close, QueuedWorkGoesOutFirst) {
  for (bool initiator_closes : {true, false}) {
    connect();
    End *from = a, *to = b;
    if (!initiator_closes) {
      // The responder may speak once it has heard the initiator.
      ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 0)), 0);
      ASSERT_REACHED(a->sent_count() == 1);
      std::swap(from, to);
    }
    // No memory is read and written at the same time: a poller may send while the engine receives.
    Buffer octets(from->memory, pattern(20000)), target(to->memory, 20000),
        shown(to->memory, 20000), sink(from->memory, 20000);
    for (uint64_t i = 0; i < 100; ++i) {
      ASSERT_EQ(to->receive(RecvWr({target.sge()}, i)), 0);
      if (i % 10 == 9) {
        ASSERT_EQ(
            from->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, i).to(shown.start(), shown.stag())),
            0);
      } else {
        ASSERT_EQ(from->post(SendWr(IBV_WR_SEND, {octets.sge()}, i)), 0);
      }
    }
    from->disconnect();
    ASSERT_TRUE(both_ended());
    const std::vector<ibv_wc> sent = from->sent(), got = to->received();
    ASSERT_EQ(sent.size(), 100u);
    expect_in_order(sent);
    EXPECT_EQ(flushed(sent), 0u);
    ASSERT_EQ(got.size(), 100u);
    for (size_t i = 0; i < 100; ++i)
      EXPECT_EQ(got[i].status, i < 90 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
    for (End* end : {a, b}) {
      EXPECT_EQ(end->end_error(), 0);
      EXPECT_EQ(end->async_events(), Events{});
    }
  }
}

TEST_P(Close, BothSidesAtOnce) {
  connect();
  Buffer one(a->memory, pattern(1000)), other(b->memory, pattern(1000));
  Buffer to_one(a->memory, 1000), to_other(b->memory, 1000);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 99)), 0);
  ASSERT_REACHED(a->sent_count() == 1);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(a->receive(RecvWr({to_one.sge()}, i)), 0);
    ASSERT_EQ(b->receive(RecvWr({to_other.sge()}, i)), 0);
    ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {one.sge()}, i)), 0);
    ASSERT_EQ(b->post(SendWr(IBV_WR_SEND, {other.sge()}, i)), 0);
  }
  a->disconnect();
  b->disconnect();
  ASSERT_TRUE(both_ended());
  for (End* end : {a, b}) {
    EXPECT_EQ(end->end_error(), 0);
    EXPECT_EQ(end->async_events(), Events{});
    EXPECT_EQ(end->received_count(), 10u);
  }
}

TEST_P(Close, TwiceIsOnce) {
  connect();
  a->disconnect();
  a->disconnect();
  ASSERT_TRUE(both_ended());
  a->disconnect();
  b->disconnect();
  world->settle();
  EXPECT_EQ(a->notices().back().kind, Notice::kEnded);
  EXPECT_EQ(a->end_error(), 0);
}

TEST_P(Close, PostsAfterADisconnectCompleteOnceAndInOrder) {
  connect();
  Buffer octets(a->memory, pattern(1000));
  a->disconnect();
  for (uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {octets.sge()}, i).to(1, 0)), 0);
  ASSERT_TRUE(both_ended());
  ASSERT_REACHED(a->sent_count() == 5);
  expect_in_order(a->sent());
  EXPECT_EQ(a->sent().back().status, IBV_WC_WR_FLUSH_ERR);
}

TEST_P(Close, AResponderThatHasNotHeardAnythingCanLeave) {
  connect({.rtr = mpa::Rtr::kNone}, {.rtr = mpa::Rtr::kNone});
  Buffer octets(b->memory, pattern(1000));
  ASSERT_EQ(b->post(SendWr(IBV_WR_SEND, {octets.sge()}, 0)), 0);
  b->disconnect();
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(flushed(b->sent()), 1u);
  EXPECT_EQ(a->end_error(), 0);
  EXPECT_EQ(b->end_error(), 0);
}

// TD-10: what the peer asked for before its FIN is answered.
TEST_P(Close, ReadsAreAnsweredAfterThePeerHasClosed) {
  connect();
  constexpr size_t kSize = 300000;
  Buffer source(b->memory, pattern(kSize)), sink(a->memory, kSize);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, 0).to(source.start(), source.stag())),
            0);
  b->disconnect();
  a->disconnect();
  ASSERT_TRUE(both_ended());
  ASSERT_EQ(a->sent_count(), 1u);
  if (a->sent()[0].status == IBV_WC_SUCCESS) {
    EXPECT_TRUE(sink.content() == source.content());
  }
  EXPECT_EQ(a->end_error(), 0);
  EXPECT_EQ(b->end_error(), 0);
}

TEST_P(Close, AResetFlushesEverything) {
  connect();
  constexpr size_t kSize = 1 << 20;
  Buffer from(a->memory, pattern(kSize)), target(b->memory, kSize), shown(b->memory, kSize),
      sink(a->memory, kSize);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(a->receive(RecvWr({}, i)), 0);
    ASSERT_EQ(b->receive(RecvWr({}, i)), 0);
    ASSERT_EQ(
        a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, i * 2).to(shown.start(), shown.stag())), 0);
    ASSERT_EQ(
        a->post(
            SendWr(IBV_WR_RDMA_WRITE, {from.sge()}, i * 2 + 1).to(target.start(), target.stag())),
        0);
  }
  b->reset_connection();
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(a->end_error(), ECONNRESET);
  for (End* end : {a, b}) {
    EXPECT_NE(end->end_error(), 0);
    EXPECT_EQ(end->async_events(), Events{IBV_EVENT_QP_FATAL});
    ASSERT_EQ(end->received_count(), 20u);
    expect_in_order(end->received());
    EXPECT_EQ(flushed(end->received()), 20u);
  }
  ASSERT_EQ(a->sent_count(), 40u);
  expect_in_order(a->sent());
}

TEST_P(Close, AnIdleConnectionThatBreaksIsNoticed) {
  connect();
  ASSERT_EQ(a->receive(RecvWr({}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_RDMA_READ, {}, 0)), 0);
  ASSERT_REACHED(a->sent_count() == 1);
  b->reset_connection();
  ASSERT_TRUE(both_ended());
  EXPECT_EQ(flushed(a->received()), 1u);
  EXPECT_EQ(a->end_error(), ECONNRESET);
}

TEST_P(Close, AnEndInsideAnFpduIsAnError) {
  connect();
  constexpr size_t kSize = 1 << 20;
  Buffer from(a->memory, pattern(kSize)), target(b->memory, kSize);
  ASSERT_EQ(b->receive(RecvWr({target.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  a->half_close();  // wherever the stream is
  ASSERT_TRUE(both_ended());
  const std::vector<ibv_wc> got = b->received();
  ASSERT_EQ(got.size(), 1u);
  if (got[0].status == IBV_WC_SUCCESS) {
    EXPECT_EQ(b->end_error(), 0);
    EXPECT_TRUE(target.content() == from.content());
  } else {
    EXPECT_EQ(got[0].status, IBV_WC_WR_FLUSH_ERR);
  }
}

// A queue pair that goes away in any state: its peer is told, nobody waits for ever, and no
// completion of it comes afterwards.
TEST_P(Close, AQueuePairIsDestroyedAtAnyTime) {
  for (int moment = 0; moment < 8; ++moment) {
    for (bool initiator : {true, false}) {
      SCOPED_TRACE(std::to_string(moment) + (initiator ? " initiator" : " responder"));
      connect();
      End *mine = a, *peer = b;
      if (!initiator) std::swap(mine, peer);
      constexpr size_t kSize = 400000;
      Buffer octets(a->memory, pattern(kSize)), sink(a->memory, kSize), target(b->memory, kSize),
          shown(b->memory, kSize);
      const auto work = [&] {
        for (uint64_t i = 0; i < 5; ++i) {
          ASSERT_EQ(b->receive(RecvWr({}, i)), 0);
          ASSERT_EQ(
              a->post(
                  SendWr(IBV_WR_RDMA_WRITE, {octets.sge()}, i).to(target.start(), target.stag())),
              0);
          ASSERT_EQ(
              a->post(SendWr(IBV_WR_RDMA_READ, {sink.sge()}, i).to(shown.start(), shown.stag())),
              0);
        }
      };
      switch (moment) {
        case 0:
          break;  // at once
        case 1:
          world->settle();
          break;  // idle
        case 2:
          work();
          break;  // busy
        case 3:
          work();
          ASSERT_REACHED(a->sent_count() > 2);
          break;
        case 4:
          mine->disconnect();
          break;  // closing
        case 5:
          work();
          peer->disconnect();
          break;  // the peer is closing
        case 6:
          work();
          mine->to_error();
          break;  // in error
        case 7:
          ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {}, 0)), 0);
          world->settle();
          break;  // waiting or blocked
      }
      if (moment == 7 && initiator)
        mine->post(SendWr(IBV_WR_RDMA_WRITE, {octets.sge()}, 0).to(0, 1));
      mine->destroy();
      if (moment == 7 && initiator) {
        ASSERT_EQ(peer->receive(RecvWr({}, 0)), 0);  // for the Send that waits
      }
      const size_t completions = mine->sent_count() + mine->received_count();
      ASSERT_REACHED(peer->ended());
      EXPECT_EQ(mine->sent_count() + mine->received_count(), completions);
      peer->destroy();
    }
  }
}

}  // namespace

UIWARP_EVERYWHERE(Close, 16);

}  // namespace uiw::test
