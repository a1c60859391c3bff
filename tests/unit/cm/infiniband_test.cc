// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections whose program moves its queue pair, by InfiniBand's rules, at one end or at both.
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

constexpr int kConsumerReject = 28, kNobodyListens = 8;  // reasons of a REJ message

constexpr uint8_t kForHours = 31;

class InfinibandTest : public ConnectionTest {
 protected:
  InfinibandTest() : ConnectionTest(device::CmRules::kInfiniband) {}

  // Id `active_` (QP 1, uid 11) wants id `passive_` (uid 22) of a listener (uid 33).
  Event make_request(const ConnParam& param = conn_param(1)) {
    new_listener(33);
    active_ = new_resolved(11, listen_address_);
    EXPECT_EQ(0, connect(active_, param));
    const Event request = channel_.expect(EventType::kConnectRequest);
    passive_ = request.id;
    set_time_wait(active_, kForHours);
    set_time_wait(passive_, kForHours);
    return request;
  }
  Event make_answer() {
    make_request(conn_param(1, "hello", 5, 6));
    EXPECT_EQ(0, accept(passive_, 22, conn_param(2, "welcome", 6, 5)));
    return channel_.expect(EventType::kConnectResponse);
  }
  int establish(uint32_t id) { return manager_.establish(channel_.channel, id); }
  void make_pair() {
    make_answer();
    ASSERT_EQ(0, establish(active_));
    EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
  }
  // TIMEWAIT_EXIT comes 4.096 us * 2^exponent after DISCONNECTED.
  void set_time_wait(uint32_t id, uint8_t exponent) {
    ASSERT_EQ(
        0, manager_.set_option(channel_.channel, id, Manager::Option::kAckTimeout, {&exponent, 1}));
  }
  bool is_attached(uint32_t qp_num) {
    bool attached = false;
    engine_->run_sync([&] { attached = qps_.at(qp_num).attached; });
    return attached;
  }
  // The active end, the passive one by hand: until it has the Request.
  RawPeer dialled() {
    RawPeer listener;
    active_ = new_resolved(11, listener.listen());
    EXPECT_EQ(0, connect(active_, conn_param(1)));
    RawPeer peer = listener.accept();
    asked_ = peer.receive_frame(mpa::FrameKind::kRequest);
    return peer;
  }
  void reply(RawPeer& peer, const Octets& behind = {}) {
    mpa::Agreement agreement;
    mpa::Wishes wishes;
    wishes.ird = wishes.ord = 4;
    Octets octets = RawPeer::encoded(mpa::make_reply(wishes, asked_, agreement));
    octets.insert(octets.end(), behind.begin(), behind.end());
    peer.send(octets);
    channel_.expect(EventType::kConnectResponse);
  }

  // Of a peer that finds no receive at the passive end.
  void accept_with_retries(uint8_t count) {
    make_request();
    ConnParam param = conn_param(2);
    param.rnr_retry_count = count;
    ASSERT_EQ(0, accept(passive_, 22, param));
    channel_.expect(EventType::kConnectResponse);
  }

  uint32_t active_ = 0, passive_ = 0;
  mpa::StartupFrame asked_;
};

TEST_F(InfinibandTest, TheAnswerIsNoConnectionYet) {
  const Event answer = make_answer();
  EXPECT_EQ(11u, answer.uid);
  EXPECT_EQ(0, answer.status);
  EXPECT_EQ("welcome", data_of(answer.param));
  EXPECT_EQ(5, answer.param.responder_resources);
  EXPECT_EQ(6, answer.param.initiator_depth);
  settle();
  EXPECT_EQ(0, channel_.queued());
  EXPECT_FALSE(is_attached(1));
  EXPECT_TRUE(is_attached(2));
}

// As the REP of an adapter, seen from this end.
TEST_F(InfinibandTest, TheAnswerHasTheDepthsOfThePassiveEnd) {
  make_request(conn_param(1, "", 5, 3));
  ASSERT_EQ(0, accept(passive_, 22, conn_param(2, "", 2, 4)));
  const Event answer = channel_.expect(EventType::kConnectResponse);
  EXPECT_EQ(4, answer.param.responder_resources);
  EXPECT_EQ(2, answer.param.initiator_depth);
  engine_->run_sync([this] {
    EXPECT_EQ(2, qps_.at(2).agreed.ird);
    EXPECT_EQ(4, qps_.at(2).agreed.ord);
  });
}

TEST_F(InfinibandTest, ThePassiveEndIsEstablishedWhenTheActiveOneIsReady) {
  make_pair();
  EXPECT_TRUE(is_attached(1));
  settle();
  EXPECT_EQ(0, channel_.queued());
  EXPECT_EQ(EINVAL, establish(active_));
  EXPECT_EQ(EINVAL, establish(passive_));
}

// MPA tells of the peer's queue pair nothing, and of its patience.
TEST_F(InfinibandTest, WhatMpaDoesNotCarryIsWhatIsTrueHere) {
  for (const Event& event : {make_request(), [this] {
                               EXPECT_EQ(0, accept(passive_, 22, conn_param(2)));
                               return channel_.expect(EventType::kConnectResponse);
                             }()}) {
    EXPECT_EQ(1u, event.param.qp_num);
    EXPECT_EQ(1, event.param.flow_control);
    EXPECT_EQ(7, event.param.retry_count);
    EXPECT_EQ(7, event.param.rnr_retry_count);
    EXPECT_EQ(0, event.param.srq);
  }
}

// rdma_connect(3): how often "the remote peer" tries that finds no receive here.
TEST_F(InfinibandTest, SevenRetriesOfThePeerAreForEver) {
  accept_with_retries(7);
  engine_->run_sync([&] { EXPECT_EQ(std::optional(true), qps_.awaits_receives); });
}

TEST_F(InfinibandTest, SixRetriesOfThePeerAreNot) {
  accept_with_retries(6);
  engine_->run_sync([&] { EXPECT_EQ(std::optional(false), qps_.awaits_receives); });
}

// ib_cm begins that time when an end asks for the end of the connection, or answers who did.
TEST_F(InfinibandTest, WhoHasDisconnectedIsToldOfTheTimeAfterTheEnd) {
  make_request();
  set_time_wait(active_, 1);
  set_time_wait(passive_, 1);
  ASSERT_EQ(0, accept(passive_, 22, conn_param(2)));
  channel_.expect(EventType::kConnectResponse);
  ASSERT_EQ(0, establish(active_));
  channel_.expect(EventType::kEstablished);
  ASSERT_EQ(0, disconnect(active_));
  std::map<uint64_t, std::vector<EventType>> told;
  for (int i = 0; i < 3; ++i) {
    const Event event = channel_.next();
    EXPECT_EQ(0, event.status);
    told[event.uid].push_back(event.type);
  }
  const std::vector<EventType> both{EventType::kDisconnected, EventType::kTimewaitExit};
  EXPECT_EQ(both, told[11]);
  EXPECT_EQ(std::vector{EventType::kDisconnected}, told[22]);
  settle();
  EXPECT_EQ(0, channel_.queued());
  EXPECT_EQ(0, disconnect(active_));
  EXPECT_EQ(0, disconnect(passive_));
  EXPECT_EQ(0, disconnect(passive_));
  EXPECT_EQ(22u, channel_.expect(EventType::kTimewaitExit).uid);
  settle();
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(InfinibandTest, AnIdMayBeDestroyedWithinThatTime) {
  make_pair();
  ASSERT_EQ(0, disconnect(passive_));
  channel_.expect(EventType::kDisconnected);
  channel_.expect(EventType::kDisconnected);
  destroy(active_);
  destroy(passive_);
  settle();
  EXPECT_EQ(1u, manager_.endpoints());  // the listener's
}

TEST_F(InfinibandTest, DisconnectedRightAfterReady) {
  make_answer();
  ASSERT_EQ(0, establish(active_));
  ASSERT_EQ(0, disconnect(active_));
  std::map<uint64_t, std::vector<EventType>> told;
  for (int i = 0; i < 3; ++i) {
    const Event event = channel_.next();
    told[event.uid].push_back(event.type);
  }
  EXPECT_EQ(std::vector<EventType>{EventType::kDisconnected}, told[11]);
  EXPECT_EQ((std::vector<EventType>{EventType::kEstablished, EventType::kDisconnected}), told[22]);
}

TEST_F(InfinibandTest, RoomForPrivateData) {
  new_listener(33);
  active_ = new_resolved(11, listen_address_);
  EXPECT_EQ(EINVAL, connect(active_, conn_param(1, std::string(57, 'x'))));
  EXPECT_EQ(0, connect(active_, conn_param(1, std::string(56, 'x'))));
  const Event request = channel_.expect(EventType::kConnectRequest);
  EXPECT_EQ(std::string(56, 'x'), data_of(request.param));
  EXPECT_EQ(EINVAL, manager_.reject(channel_.channel, request.id, Octets(149, 'z')));
  EXPECT_EQ(0, accept(request.id, 22, conn_param(2, std::string(196, 'y'))));
  EXPECT_EQ(std::string(196, 'y'), data_of(channel_.expect(EventType::kConnectResponse).param));

  const uint32_t second = new_resolved(12, listen_address_);
  EXPECT_EQ(0, connect(second, conn_param(3)));
  const uint32_t refused = channel_.expect(EventType::kConnectRequest).id;
  EXPECT_EQ(0, manager_.reject(channel_.channel, refused, Octets(148, 'z')));
  EXPECT_EQ(std::string(148, 'z'),
            data_of(channel_.expect(EventType::kRejected, kConsumerReject).param));
}

TEST_F(InfinibandTest, ARequestWhoseAcceptIsRefusedIsRejected) {
  make_request();
  EXPECT_EQ(EINVAL, accept(passive_, 22, conn_param(2, std::string(197, 'y'))));
  EXPECT_EQ(11u, channel_.expect(EventType::kRejected, kConsumerReject).uid);
  // It is over at both ends.
  EXPECT_EQ(EINVAL, accept(passive_, 22, conn_param(2)));
  EXPECT_EQ(EINVAL, manager_.reject(channel_.channel, passive_, {}));
  EXPECT_EQ(EINVAL, establish(active_));
}

TEST_F(InfinibandTest, WhyItWasRejected) {
  make_request();
  EXPECT_EQ(0, manager_.reject(channel_.channel, passive_, {}));
  channel_.expect(EventType::kRejected, kConsumerReject);
  EXPECT_EQ(EINVAL, establish(active_));

  sockaddr_storage nobody;
  {
    RawPeer gone;
    nobody = gone.listen();
  }
  ASSERT_EQ(0, connect(new_resolved(12, nobody), conn_param(3)));
  channel_.expect(EventType::kRejected, kNobodyListens);
}

TEST_F(InfinibandTest, NotReadyBeforeTheAnswer) {
  make_request();
  EXPECT_EQ(EINVAL, establish(active_));
}

// As Linux's rdma_disconnect(), whose DREQ and DREP have no place before the connection.
TEST_F(InfinibandTest, DisconnectedBeforeItIsReadyNothingHappens) {
  make_request();
  EXPECT_EQ(0, disconnect(active_));
  ASSERT_EQ(0, accept(passive_, 22, conn_param(2)));
  channel_.expect(EventType::kConnectResponse);
  EXPECT_EQ(0, disconnect(active_));
  EXPECT_EQ(0, establish(active_));
  EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
}

TEST_F(InfinibandTest, ThePeerLeavesBehindItsAnswer) {
  make_answer();
  destroy(passive_);
  EXPECT_EQ(11u, channel_.expect(EventType::kRejected, kConsumerReject).uid);
  EXPECT_EQ(EINVAL, establish(active_));
  EXPECT_EQ(0, disconnect(active_));
}

TEST_F(InfinibandTest, TheActiveEndIsNeverReady) {
  make_answer();
  destroy(active_);
  EXPECT_EQ(22u, channel_.expect(EventType::kRejected, kConsumerReject).uid);
}

TEST_F(InfinibandTest, TheActiveEndDoesNotLikeTheAnswer) {
  make_answer();
  EXPECT_EQ(0, manager_.reject(channel_.channel, active_, {}));
  EXPECT_EQ(22u, channel_.expect(EventType::kRejected, kConsumerReject).uid);
  EXPECT_EQ(EINVAL, establish(active_));
}

TEST_F(InfinibandTest, TheActiveEndKeepsThePassiveOneWaiting) {
  settings_.reply_timeout_ms = 20;
  new_listener(33);
  RawPeer peer = dial();
  passive_ = request(peer, request_frame()).id;
  ASSERT_EQ(0, accept(passive_, 22, conn_param(2)));
  mpa::StartupFrame answer = peer.receive_frame(mpa::FrameKind::kReply);
  EXPECT_FALSE(answer.reject);
  // The end of the stream, after which the peer goes as well.
  EXPECT_TRUE(peer.receive_all().empty());
  peer.close();
  channel_.expect(EventType::kUnreachable, -ETIMEDOUT);
}

// There is nothing that could come as "ready to use".
TEST_F(InfinibandTest, WithoutRtrFrameThePassiveEndIsEstablishedAtOnce) {
  new_listener(33);
  RawPeer peer = dial();
  passive_ = request(peer, request_frame(1)).id;
  ASSERT_EQ(0, accept(passive_, 22, conn_param(2)));
  EXPECT_EQ(22u, channel_.expect(EventType::kEstablished).uid);
}

// siw may speak before it is spoken to.
TEST_F(InfinibandTest, WhatComesBehindTheAnswerIsTheQueuePairs) {
  RawPeer peer = dialled();
  reply(peer, {'a', 'b'});
  peer.send({'c'});
  ASSERT_EQ(0, establish(active_));
  EXPECT_EQ(Octets{'r'}, peer.receive(1));
  peer.finish_sending();
  channel_.expect(EventType::kDisconnected);
  Octets all;
  engine_->run_sync([&] { all = qps_.at(1).all_octets(); });
  EXPECT_EQ((Octets{'a', 'b', 'c'}), all);
}

TEST_F(InfinibandTest, ThePeerLeavesBeforeTheEngineHasHandedOverTheStream) {
  RawPeer peer = dialled();
  reply(peer);
  peer.reset();
  channel_.expect(EventType::kRejected, kConsumerReject);
  EXPECT_EQ(EINVAL, establish(active_));
}

TEST_F(InfinibandTest, AQueuePairThatHasGoneIsAnEndOfTheConnection) {
  make_answer();
  engine_->run_sync([this] { qps_.gone = 1; });
  ASSERT_EQ(0, establish(active_));
  std::map<uint64_t, EventType> told;
  for (int i = 0; i < 2; ++i) {
    const Event event = channel_.next();
    told[event.uid] = event.type;
    if (event.uid == 22 && event.type == EventType::kEstablished) --i;  // by the Terminate
  }
  EXPECT_EQ(EventType::kDisconnected, told[11]);
}

// As two processes with different faces have them.
class MixedRulesTest : public InfinibandTest {
 protected:
  // Id 1 of `active` to id 2 of `passive`.
  void make_pair_between(TestChannel& active, Manager& of_active, TestChannel& passive,
                         Manager& of_passive) {
    uint32_t listener = 0, id = 0;
    ASSERT_EQ(0, of_passive.create_id(passive.channel, 33, PortSpace::kTcp, Service::kConnection,
                                      listener));
    ASSERT_EQ(0, of_passive.bind(passive.channel, listener, ip("127.0.0.1", 0)));
    ASSERT_EQ(0, of_passive.listen(passive.channel, listener, 0));
    Route route;
    ASSERT_EQ(0, of_passive.query(passive.channel, listener, route));
    ASSERT_EQ(0,
              of_active.create_id(active.channel, 11, PortSpace::kTcp, Service::kConnection, id));
    ASSERT_EQ(0, of_active.resolve_address(active.channel, id, {}, route.source));
    active.expect(EventType::kAddrResolved);
    ASSERT_EQ(0, of_active.resolve_route(active.channel, id));
    active.expect(EventType::kRouteResolved);
    ASSERT_EQ(0, of_active.connect(active.channel, id, conn_param(1)));
    const Event request = passive.expect(EventType::kConnectRequest);
    ASSERT_EQ(0, of_passive.accept(passive.channel, request.id, 22, conn_param(2)));
    active_ = id;
  }
  Manager iwarp_{qps_, settings_};
  TestChannel iwarp_channel_{iwarp_};
};

TEST_F(MixedRulesTest, IwarpConnectsToInfiniband) {
  make_pair_between(iwarp_channel_, iwarp_, channel_, manager_);
  iwarp_channel_.expect(EventType::kEstablished);
  channel_.expect(EventType::kEstablished);
  ASSERT_EQ(0, iwarp_.disconnect(iwarp_channel_.channel, active_));
  iwarp_channel_.expect(EventType::kDisconnected);
  channel_.expect(EventType::kDisconnected);
}

TEST_F(MixedRulesTest, InfinibandConnectsToIwarp) {
  make_pair_between(channel_, manager_, iwarp_channel_, iwarp_);
  channel_.expect(EventType::kConnectResponse);
  iwarp_channel_.expect(EventType::kEstablished);
  ASSERT_EQ(0, establish(active_));
  ASSERT_EQ(0, disconnect(active_));
  iwarp_channel_.expect(EventType::kDisconnected);
  channel_.expect(EventType::kDisconnected);
}

}  // namespace
}  // namespace uiw::cm::test
