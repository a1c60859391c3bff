// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Unreliable connections: the sender hears of nothing that goes wrong at the other end, and what
// arrives is what was sent, in order, with gaps.
#include <arpa/inet.h>

#include <algorithm>
#include <random>
#include <set>

#include "sim/media.h"

namespace uiw::test {
namespace {

using qp::Loss;

constexpr auto kSendImm = IBV_WR_SEND_WITH_IMM, kWriteImm = IBV_WR_RDMA_WRITE_WITH_IMM;

class UnreliableConnection : public Behaviour {
 protected:
  void connect() {
    EndOptions options{.depth = 64, .immediates = true, .service = core::Service::kUnreliable};
    Behaviour::connect(options, options);
  }
  // It is as if nothing had happened.
  static void expect_silence(End& end) {
    EXPECT_EQ(end.async_events(), std::vector<ibv_event_type>{});
    for (const ibv_wc& wc : end.sent()) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    expect_in_order(end.sent());
  }
  // The connection has gone, however; requests complete, and a receive stays posted.
  void expect_life_alone(End& end) {
    Buffer buffer(end.memory, pattern(5000));
    const size_t before = end.sent_count(), received = end.received_count();
    ASSERT_EQ(end.receive(RecvWr({buffer.sge()}, 77)), 0);
    for (uint64_t id = before; id < before + 200; ++id) {
      ASSERT_EQ(end.post(SendWr(IBV_WR_SEND, {buffer.sge()}, id)), 0);
      ASSERT_REACHED(end.sent_count() == id + 1);
    }
    expect_silence(end);
    EXPECT_EQ(end.received_count(), received);
    EXPECT_GT(end.lost(Loss::kNoPeer), 0u);
    end.to_error();
    ASSERT_REACHED(end.received_count() == received + 1);
    EXPECT_EQ(end.received().back().wr_id, 77u);
    EXPECT_EQ(end.received().back().status, IBV_WC_WR_FLUSH_ERR);
  }
};

TEST_P(UnreliableConnection, CarriesMessagesOfAllKinds) {
  connect();
  uint64_t id = 0;
  for (size_t size : {0u, 1u, 1440u, 70000u, 1u << 20}) {
    SCOPED_TRACE(size);
    Buffer from(a->memory, pattern(size)), into(b->memory, size), target(b->memory, size);
    for (const ibv_wr_opcode opcode : {IBV_WR_SEND, kSendImm, kWriteImm}) {
      ASSERT_EQ(b->receive(RecvWr({into.sge()}, id)), 0);
      ASSERT_EQ(a->post(SendWr(opcode, {from.sge()}, id)
                            .to(target.start(), target.stag())
                            .immediate(static_cast<uint32_t>(id))),
                0);
      ASSERT_REACHED(b->received_count() == id + 1 && a->sent_count() == id + 1);
      const ibv_wc wc = b->received().back();
      if (opcode == IBV_WR_SEND)
        EXPECT_EQ(wc.byte_len, size);
      else
        expect_immediate(wc, opcode == kSendImm ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, id,
                         static_cast<uint32_t>(id), size);
      ++id;
    }
    EXPECT_TRUE(into.content() == from.content());
    EXPECT_TRUE(target.content() == from.content());
  }
  expect_silence(*a);
}

TEST_P(UnreliableConnection, WhatFindsNoReceiveIsDropped) {
  connect();
  Buffer from(a->memory, pattern(3000)), into(b->memory, 3000);
  for (uint32_t id = 0; id < 3; ++id)
    ASSERT_EQ(a->post(SendWr(kSendImm, {from.sge()}, id).immediate(id)), 0);
  ASSERT_REACHED((b->collect(), b->lost(Loss::kNoReceive) == 3));
  ASSERT_EQ(b->receive(RecvWr({into.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(kSendImm, {from.sge()}, 3).immediate(4)), 0);
  ASSERT_REACHED(b->received_count() == 1);
  expect_immediate(b->received()[0], IBV_WC_RECV, 0, 4, 3000);
  EXPECT_EQ(b->lost(Loss::kNoReceive), 3u);
  ASSERT_REACHED(a->sent_count() == 4);
  expect_silence(*a);
  expect_silence(*b);
}

TEST_P(UnreliableConnection, WritesWithoutTheRightAreDropped) {
  connect();
  Buffer from(a->memory, pattern(70000)), target(b->memory, 70000, mem::kRemoteRead),
      into(b->memory, 70000);
  ASSERT_EQ(b->receive(RecvWr({into.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(kWriteImm, {from.sge()}, 0).to(target.start(), target.stag())), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 1)), 0);
  ASSERT_REACHED(b->received_count() == 1 && a->sent_count() == 2);
  EXPECT_EQ(b->received()[0].opcode, IBV_WC_RECV);
  EXPECT_TRUE(into.content() == from.content());
  EXPECT_TRUE(target.content() == Octets(70000));
  EXPECT_EQ(b->lost(Loss::kNoAccess), 1u);
  expect_silence(*a);
  expect_silence(*b);
}

TEST_P(UnreliableConnection, WhatIsTooLongIsDroppedAndItsReceiveServesTheNext) {
  connect();
  Buffer from(a->memory, pattern(70000)), into(b->memory, 69999);
  ASSERT_EQ(b->receive(RecvWr({into.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge(0, 10)}, 1)), 0);
  ASSERT_REACHED(b->received_count() == 1);
  EXPECT_EQ(b->received()[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(b->received()[0].byte_len, 10u);
  EXPECT_EQ(b->lost(Loss::kTooLong), 1u);
}

TEST_P(UnreliableConnection, APeerThatGoesIsNotMissed) {
  connect();
  b->destroy();
  ASSERT_REACHED(a->ended());
  EXPECT_EQ(a->end_error(), 0);
  expect_life_alone(*a);
}

TEST_P(UnreliableConnection, AConnectionThatBreaksIsNotMissed) {
  connect();
  Buffer from(a->memory, pattern(70000)), into(b->memory, 70000);
  ASSERT_EQ(b->receive(RecvWr({into.sge()}, 0)), 0);
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {from.sge()}, 0)), 0);
  a->reset_connection();
  ASSERT_TRUE(both_ended());
  ASSERT_REACHED(a->sent_count() == 1);
  expect_life_alone(*a);
  b->collect();
  expect_silence(*b);
}

// An error of its own is an end, and the other one hears nothing of that.
TEST_P(UnreliableConnection, AnErrorOfItsOwnIsAnError) {
  connect();
  Buffer from(a->memory, pattern(100));
  ASSERT_EQ(a->post(SendWr(IBV_WR_SEND, {{from.start(), 10, from.stag() ^ 1}}, 0)), 0);
  ASSERT_REACHED(a->sent_count() == 1 && !a->async_events().empty() && b->ended());
  EXPECT_EQ(statuses(a->sent()), std::vector{IBV_WC_LOC_PROT_ERR});
  EXPECT_EQ(a->async_events(), std::vector{IBV_EVENT_QP_FATAL});
  expect_life_alone(*b);
}

// --- whole lives by seed ---

constexpr size_t kSize = 3000;

class Side {
 public:
  Side(End& me, uint32_t seed)
      : random_(seed), source(me.memory, pattern(kSize, seed)), target(me.memory, kSize), me_(me) {}

  void do_something(const Side& peer) {
    const auto size = static_cast<uint32_t>(random_() % kSize);
    const auto number = static_cast<uint32_t>(sends_);
    SendWr wr(random_() % 2 ? kSendImm : kWriteImm, {source.sge(0, size)}, number);
    wr.to(peer.target.start(), peer.target.stag()).immediate(number);
    switch (random_() % 4) {
      case 0:
        return post_receive();
      case 1:
        // Nobody allowed it.
        wr.to(peer.target.start(), peer.target.stag() ^ 0x100);
        if (wr.wr.opcode == kWriteImm && size > 0) forbidden_.insert(number);
    }
    if (me_.post(std::move(wr)) != 0) return;
    sizes_.push_back(size);
    ++sends_;
  }
  void post_receive() {
    Buffer& into = *into_.emplace_back(
        std::make_unique<Buffer>(me_.memory, random_() % 8 ? kSize : random_() % kSize));
    if (me_.receive(RecvWr({into.sge()}, receives_)) == 0) ++receives_;
  }
  bool all_sent() { return me_.sent_count() == sends_; }
  bool all_received() { return me_.received_count() == receives_; }

  void check(const Side& peer) {
    expect_in_order(me_.sent());
    for (const ibv_wc& wc : me_.sent()) ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(me_.async_events(), std::vector<ibv_event_type>{});
    const std::vector<ibv_wc> received = me_.received();
    expect_in_order(received);
    int64_t before = -1;
    for (size_t i = 0; i < received.size(); ++i) {
      if (received[i].status != IBV_WC_SUCCESS) {
        ASSERT_EQ(received[i].status, IBV_WC_WR_FLUSH_ERR);
        continue;
      }
      const uint32_t number = ntohl(received[i].imm_data);
      ASSERT_GT(int64_t{number}, std::exchange(before, number));
      ASSERT_LT(number, peer.sends_);
      EXPECT_EQ(received[i].byte_len, peer.sizes_[number]);
      EXPECT_FALSE(peer.forbidden_.contains(number));
      if (received[i].opcode != IBV_WC_RECV) continue;
      Octets content = into_[i]->content(), sent = peer.source.content();
      content.resize(received[i].byte_len);
      sent.resize(received[i].byte_len);
      EXPECT_TRUE(content == sent);
    }
  }

 private:
  std::mt19937 random_;

 public:
  Buffer source, target;

 private:
  End& me_;
  size_t sends_ = 0, receives_ = 0;
  std::vector<uint32_t> sizes_;
  std::set<uint32_t> forbidden_;
  std::vector<std::unique_ptr<Buffer>> into_;
};

class UnreliableLife : public UnreliableConnection {
 protected:
  void live(uint32_t seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    connect();
    Side one(*a, random()), other(*b, random());
    const auto work = [&](size_t steps, bool both) {
      for (size_t i = 0; i < steps; ++i) {
        if (random() % 2 || !both)
          other.do_something(one);
        else
          one.do_something(other);
        size_t turns = random() % 4 ? 0 : random() % 20;
        world->run_until([&] { return turns-- == 0; });
      }
    };
    work(random() % 60, true);
    bool destroyed = false;
    switch (random() % 6) {
      case 0:
        a->reset_connection();
        break;
      case 1:
        a->half_close();
        break;
      case 2:
        if (world->can_corrupt()) world->corrupt_once();
        break;
      case 3:
        destroyed = true;
        a->destroy();
        break;
      default:
        break;
    }
    work(random() % 60, !destroyed);
    ASSERT_REACHED((destroyed || one.all_sent()) && other.all_sent());
    if (!destroyed) a->to_error();
    b->to_error();
    ASSERT_REACHED((destroyed || one.all_received()) && other.all_received());
    if (!destroyed) one.check(other);
    other.check(one);
  }
};

TEST_P(UnreliableLife, TheSenderHearsOfNothing) {
  if (!is_tcp()) return live(GetParam().seed);
  for (uint32_t seed = 1; seed <= 50 && !HasFatalFailure(); ++seed) live(seed);
}

}  // namespace

UIWARP_EVERYWHERE(UnreliableConnection, 20);
UIWARP_EVERYWHERE(UnreliableLife, 100);

}  // namespace uiw::test
