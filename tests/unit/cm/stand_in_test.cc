// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections by InfiniBand's rules for which there is no queue pair, at one end or at both.
#include "cm/first_fpdu.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

constexpr uint32_t kOfNobody = 0x4711, kOfNobodyElse = 0x4712;
constexpr int kClosed = 28;

class StandInTest : public ConnectionTest {
 protected:
  StandInTest() : ConnectionTest(device::CmRules::kInfiniband) {}

  void make_answer(uint32_t active_qp, uint32_t passive_qp) {
    new_listener(33);
    active_ = new_resolved(11, listen_address_);
    ASSERT_EQ(0, connect(active_, conn_param(active_qp, "hello")));
    passive_ = channel_.expect(EventType::kConnectRequest).id;
    for (const uint32_t id : {active_, passive_}) {
      const uint8_t shortest = 1;
      ASSERT_EQ(0, manager_.set_option(channel_.channel, id, Manager::Option::kAckTimeout,
                                       {&shortest, 1}));
    }
    ASSERT_EQ(0, accept(passive_, 22, conn_param(passive_qp, "welcome")));
    EXPECT_EQ("welcome", data_of(channel_.expect(EventType::kConnectResponse).param));
  }
  void make_pair(uint32_t active_qp, uint32_t passive_qp) {
    make_answer(active_qp, passive_qp);
    ASSERT_EQ(0, manager_.establish(channel_.channel, active_));
    EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
  }
  // Both ends are told of the end, and of the time after it who has asked for it.
  void expect_ends(uint64_t who = 11) {
    std::map<uint64_t, std::vector<EventType>> told;
    for (int i = 0; i < 3; ++i) {
      const Event event = channel_.next();
      told[event.uid].push_back(event.type);
    }
    const std::vector<EventType> both{EventType::kDisconnected, EventType::kTimewaitExit};
    EXPECT_EQ(both, told[who]);
    EXPECT_EQ(std::vector{EventType::kDisconnected}, told[11 + 22 - who]);
  }
  // The passive end, by hand, which has sent its Reply; the active one is ready.
  RawPeer make_ready(const mpa::Wishes& wishes) {
    RawPeer listener;
    active_ = new_resolved(11, listener.listen());
    EXPECT_EQ(0, connect(active_, conn_param(kOfNobody)));
    RawPeer peer = listener.accept();
    const mpa::StartupFrame asked = peer.receive_frame(mpa::FrameKind::kRequest);
    mpa::Agreement agreement;
    peer.send(mpa::make_reply(wishes, asked, agreement));
    channel_.expect(EventType::kConnectResponse);
    EXPECT_EQ(0, manager_.establish(channel_.channel, active_));
    return peer;
  }
  // What it gets behind its Reply.
  Octets first_octets(mpa::Rtr rtr, size_t size) {
    mpa::Wishes wishes;
    wishes.rtr = rtr;
    wishes.crc = false;
    wishes.ird = wishes.ord = 4;
    RawPeer peer = make_ready(wishes);
    const Octets first = peer.receive(size);
    destroy(active_);
    return first;
  }

  uint32_t active_ = 0, passive_ = 0;
};

TEST_F(StandInTest, BothEndsHaveNoQueuePair) {
  make_pair(kOfNobody, kOfNobodyElse);
  ASSERT_EQ(0, disconnect(active_));
  expect_ends();
}

TEST_F(StandInTest, ThePassiveEndDisconnects) {
  make_pair(kOfNobody, kOfNobodyElse);
  ASSERT_EQ(0, disconnect(passive_));
  expect_ends(22);
}

TEST_F(StandInTest, OnlyTheActiveEndHasNone) {
  make_pair(kOfNobody, 2);
  EXPECT_EQ(EINVAL, qps_.claim(2));  // its queue pair is taken
  ASSERT_EQ(0, disconnect(active_));
  settle();
  channel_.expect(EventType::kDisconnected);
}

TEST_F(StandInTest, OnlyThePassiveEndHasNone) {
  make_pair(1, kOfNobody);
  ASSERT_EQ(0, disconnect(passive_));
  channel_.expect(EventType::kDisconnected);
}

TEST_F(StandInTest, TheSameNumberServesMoreThanOneConnection) {
  make_pair(kOfNobody, kOfNobody);
  const uint32_t first = active_;
  const uint32_t another = new_resolved(12, listen_address_);
  ASSERT_EQ(0, connect(another, conn_param(kOfNobody)));
  ASSERT_EQ(0, accept(channel_.expect(EventType::kConnectRequest).id, 23, conn_param(kOfNobody)));
  EXPECT_EQ(12u, channel_.expect(EventType::kConnectResponse).uid);
  ASSERT_EQ(0, manager_.establish(channel_.channel, another));
  EXPECT_EQ(23u, channel_.expect(EventType::kEstablished).uid);
  ASSERT_EQ(0, disconnect(first));
  expect_ends();
}

TEST_F(StandInTest, ADestroyedIdEndsTheConnection) {
  make_pair(kOfNobody, kOfNobodyElse);
  destroy(active_);
  EXPECT_EQ(22u, channel_.expect(EventType::kDisconnected).uid);
  ASSERT_EQ(0, disconnect(passive_));
  channel_.expect(EventType::kTimewaitExit);
  destroy(passive_);
  settle();
  EXPECT_EQ(1u, manager_.endpoints());  // the listener's
}

TEST_F(StandInTest, DisconnectedBeforeTheEngineCameToIt) {
  make_answer(kOfNobody, kOfNobodyElse);
  engine_->run_sync([this] {
    EXPECT_EQ(0, manager_.establish(channel_.channel, active_));
    EXPECT_EQ(0, disconnect(active_));
  });
  std::vector<EventType> of_active;
  while (of_active.size() < 2) {
    const Event event = channel_.next();
    if (event.uid == 11u) of_active.push_back(event.type);
  }
  EXPECT_EQ(EventType::kDisconnected, of_active[0]);
}

TEST_F(StandInTest, APeerThatDoesNotCloseIsLeftAfterATime) {
  settings_.close_timeout_ms = 1;
  const RawPeer peer = make_ready({});
  ASSERT_EQ(0, disconnect(active_));
  channel_.expect(EventType::kDisconnected);
}

TEST_F(StandInTest, APeerThatGoesBeforeItIsReadyHasRejected) {
  make_answer(kOfNobody, kOfNobodyElse);
  destroy(active_);
  EXPECT_EQ(22u, channel_.expect(EventType::kRejected, kClosed).uid);
}

TEST_F(StandInTest, TheRtrFrameIsTheOneThatWasAgreedOn) {
  EXPECT_EQ((Octets{0, 14, 0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
            first_octets(mpa::Rtr::kWrite, 20));
  const Octets read = first_octets(mpa::Rtr::kRead, 52);
  EXPECT_EQ((Octets{0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}),
            Octets(read.begin(), read.begin() + 20));
  EXPECT_EQ(Octets(32, 0), Octets(read.begin() + 20, read.end()));
}

// By iWARP's rules the connection moves the queue pair, and there must be one.
class IwarpTest : public ConnectionTest {};

TEST_F(IwarpTest, NoConnectionWithoutAQueuePair) {
  new_listener(33);
  RawPeer peer = dial();
  const Event event = request(peer, request_frame());
  EXPECT_EQ(EINVAL, accept(event.id, 22, conn_param(kOfNobody)));
}

}  // namespace
}  // namespace uiw::cm::test
