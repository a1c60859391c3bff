// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Both ends of a connection in one process: conformance 4.1, 4.2, 4.5.
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

class PairTest : public ConnectionTest {
 protected:
  // Connects id `active_` (QP 1, uid 11) to id `passive_` (QP 2, uid 22) of `listener_` (uid 33).
  void make_pair(const char* host = "127.0.0.1") {
    listener_ = new_listener(33, 0, host);
    active_ = new_resolved(11, listen_address_);
    ASSERT_EQ(0, connect(active_, conn_param(1, "hello", 5, 6)));
    const Event request = channel_.expect(EventType::kConnectRequest);
    EXPECT_EQ(33u, request.uid);
    EXPECT_EQ("hello", data_of(request.param));
    EXPECT_EQ(6, request.param.responder_resources);
    EXPECT_EQ(5, request.param.initiator_depth);
    passive_ = request.id;
    ASSERT_EQ(0, accept(passive_, 22, conn_param(2, "welcome", 6, 5)));
    for (int i = 0; i < 2; ++i) {
      const Event event = channel_.expect(EventType::kEstablished);
      if (event.uid == 11) {
        EXPECT_EQ("welcome", data_of(event.param));
        EXPECT_EQ(5, event.param.responder_resources);
        EXPECT_EQ(6, event.param.initiator_depth);
        EXPECT_EQ(active_, event.id);
      } else {
        EXPECT_EQ(22u, event.uid);
        EXPECT_EQ("", data_of(event.param));
        EXPECT_EQ(6, event.param.responder_resources);
        EXPECT_EQ(5, event.param.initiator_depth);
        EXPECT_EQ(passive_, event.id);
      }
    }
  }
  // What the listener hears of id `active_` (uid 11), which is disconnected before the answer.
  Event request_of_one_that_disconnects() {
    new_listener(33);
    active_ = new_resolved(11, listen_address_);
    EXPECT_EQ(0, connect(active_, conn_param(1)));
    EXPECT_EQ(0, disconnect(active_));
    return channel_.expect(EventType::kConnectRequest);
  }
  void expect_both_disconnected() {
    uint64_t uids = 0;
    for (int i = 0; i < 2; ++i) uids += channel_.expect(EventType::kDisconnected).uid;
    EXPECT_EQ(33u, uids);
    settle();
    EXPECT_EQ(0, channel_.queued());
  }

  uint32_t listener_ = 0, active_ = 0, passive_ = 0;
};

TEST_F(PairTest, ConnectsAndDisconnectsFromTheActiveEnd) {
  make_pair();
  EXPECT_EQ(0, disconnect(active_));
  // The fake queue pair answers the peer's FIN by closing.
  expect_both_disconnected();
  EXPECT_EQ(0, disconnect(active_));  // twice is normal
  EXPECT_EQ(0, disconnect(passive_));
  settle();
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(PairTest, ConnectsAndDisconnectsFromThePassiveEnd) {
  make_pair();
  EXPECT_EQ(0, disconnect(passive_));
  EXPECT_EQ(0, disconnect(passive_));
  expect_both_disconnected();
}

// As Linux's iw_cm_disconnect(), which waits for the answer.
TEST_F(PairTest, DisconnectedWhileItConnectsItEndsWhenItStands) {
  const Event request = request_of_one_that_disconnects();
  ASSERT_EQ(0, accept(request.id, 22, conn_param(2)));
  std::map<uint64_t, std::vector<EventType>> events;
  for (int i = 0; i < 4; ++i) {
    const Event event = channel_.next();
    events[event.uid].push_back(event.type);
  }
  const std::vector<EventType> each{EventType::kEstablished, EventType::kDisconnected};
  EXPECT_EQ(each, events[11]);
  EXPECT_EQ(each, events[22]);
}

TEST_F(PairTest, DisconnectedWhileItConnectsItMayBeRejected) {
  const Event request = request_of_one_that_disconnects();
  EXPECT_EQ(0, manager_.reject(channel_.channel, request.id, {}));
  channel_.expect(EventType::kRejected, -ECONNREFUSED);
  settle();
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(PairTest, BothEndsKnowAddressesAndDevice) {
  make_pair();
  Route active, passive, listener;
  ASSERT_EQ(0, manager_.query(channel_.channel, active_, active));
  ASSERT_EQ(0, manager_.query(channel_.channel, passive_, passive));
  ASSERT_EQ(0, manager_.query(channel_.channel, listener_, listener));
  EXPECT_NE(0u, active.node_guid);
  EXPECT_EQ(active.node_guid, passive.node_guid);
  EXPECT_EQ(active.node_guid, listener.node_guid);
  EXPECT_TRUE(transport::same_host(active.source, passive.destination));
  EXPECT_EQ(transport::port_of(active.source), transport::port_of(passive.destination));
  EXPECT_TRUE(transport::same_host(active.destination, passive.source));
  EXPECT_EQ(transport::port_of(active.destination), transport::port_of(passive.source));
}

TEST_F(PairTest, WorksOverIpv6Loopback) {
  make_pair("::1");
}

TEST_F(PairTest, WildcardListenerHasNoDeviceButItsChildHas) {
  const uint32_t listener = new_listener(33, 0, "0.0.0.0");
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, listener, route));
  EXPECT_EQ(0u, route.node_guid);
  const uint32_t active = new_resolved(11, ip("127.0.0.1", transport::port_of(listen_address_)));
  ASSERT_EQ(0, connect(active, conn_param(1)));
  const Event request = channel_.expect(EventType::kConnectRequest);
  ASSERT_EQ(0, manager_.query(channel_.channel, request.id, route));
  EXPECT_NE(0u, route.node_guid);
}

TEST_F(PairTest, DualStackListenerNamesAnIpv4PeerByItsIpv4Address) {
  new_listener(33, 0, "::");
  const uint32_t active = new_resolved(11, ip("127.0.0.1", transport::port_of(listen_address_)));
  ASSERT_EQ(0, connect(active, conn_param(1)));
  const Event request = channel_.expect(EventType::kConnectRequest);
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, request.id, route));
  EXPECT_EQ(AF_INET, route.source.ss_family);
  EXPECT_EQ(AF_INET, route.destination.ss_family);
  EXPECT_NE(0u, route.node_guid);
}

TEST_F(PairTest, RejectCarriesPrivateData) {
  new_listener(33);
  const uint32_t active = new_resolved(11, listen_address_);
  ASSERT_EQ(0, connect(active, conn_param(1)));
  const Event request = channel_.expect(EventType::kConnectRequest);
  const Octets why{'n', 'o'};
  EXPECT_EQ(0, manager_.reject(channel_.channel, request.id, why));
  const Event rejected = channel_.expect(EventType::kRejected, -ECONNREFUSED);
  EXPECT_EQ(11u, rejected.uid);
  EXPECT_EQ("no", data_of(rejected.param));
  // It is over at both ends.
  EXPECT_EQ(EINVAL, accept(request.id, 22, conn_param(2)));
  EXPECT_EQ(EINVAL, connect(active, conn_param(1)));
  EXPECT_EQ(0, disconnect(active));
  settle();
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(PairTest, ARefusedAcceptRejectsTheRequest) {
  new_listener(33);
  for (const ConnParam& param : {conn_param(0), conn_param(2, std::string(252, 'x'))}) {
    const uint32_t active = new_resolved(11, listen_address_);
    ASSERT_EQ(0, connect(active, conn_param(1)));
    const Event request = channel_.expect(EventType::kConnectRequest);
    EXPECT_EQ(EINVAL, accept(request.id, 22, param));
    EXPECT_EQ(11u, channel_.expect(EventType::kRejected, -ECONNREFUSED).uid);
    EXPECT_EQ(EINVAL, accept(request.id, 22, conn_param(2)));
  }
  settle();
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(PairTest, DestroyingTheRequestRejectsIt) {
  new_listener(33);
  const uint32_t active = new_resolved(11, listen_address_);
  ASSERT_EQ(0, connect(active, conn_param(1)));
  EXPECT_EQ(0u, destroy(channel_.expect(EventType::kConnectRequest).id));
  channel_.expect(EventType::kRejected, -ECONNREFUSED);
}

TEST_F(PairTest, DestroyingTheListenerRejectsWhatNobodyFetched) {
  const uint32_t listener = new_listener(33);
  TestChannel other(manager_);
  uint32_t active = new_id(11, &other);
  ASSERT_EQ(0, manager_.resolve_address(other.channel, active, {}, listen_address_));
  other.expect(EventType::kAddrResolved);
  ASSERT_EQ(0, manager_.resolve_route(other.channel, active));
  other.expect(EventType::kRouteResolved);
  ASSERT_EQ(0, manager_.connect(other.channel, active, conn_param(1)));
  while (channel_.queued() == 0) settle();
  EXPECT_EQ(0u, destroy(listener));
  EXPECT_EQ(0, channel_.queued());
  other.expect(EventType::kRejected, -ECONNREFUSED);
}

TEST_F(PairTest, BacklogCountsRequestsThatNobodyFetched) {
  TestChannel other(manager_);
  new_listener(33, 2);
  std::vector<uint32_t> actives;
  auto start = [&](uint64_t uid) {
    const uint32_t id = new_id(uid, &other);
    EXPECT_EQ(0, manager_.resolve_address(other.channel, id, {}, listen_address_));
    other.expect(EventType::kAddrResolved);
    EXPECT_EQ(0, manager_.resolve_route(other.channel, id));
    other.expect(EventType::kRouteResolved);
    EXPECT_EQ(0, manager_.connect(other.channel, id, conn_param(static_cast<uint32_t>(uid))));
  };
  start(1);
  start(2);
  while (channel_.queued() < 2) settle();
  start(3);
  EXPECT_EQ(3u, other.expect(EventType::kRejected, -ECONNREFUSED).uid);
  // Fetching one makes room for one.
  channel_.expect(EventType::kConnectRequest);
  start(4);
  while (channel_.queued() < 2) settle();
  start(5);
  EXPECT_EQ(5u, other.expect(EventType::kRejected, -ECONNREFUSED).uid);
}

TEST_F(PairTest, DestroyingAConnectedIdDisconnectsThePeer) {
  make_pair();
  EXPECT_EQ(3u, destroy(active_));  // ADDR_RESOLVED, ROUTE_RESOLVED, ESTABLISHED
  EXPECT_EQ(22u, channel_.expect(EventType::kDisconnected).uid);
  EXPECT_EQ(2u, destroy(passive_));   // ESTABLISHED, DISCONNECTED
  EXPECT_EQ(1u, destroy(listener_));  // CONNECT_REQUEST
  settle();
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(PairTest, EndOfTheQueuePairIsADisconnect) {
  make_pair();
  engine_->run_sync([this] { qps_.at(1).cut(); });
  expect_both_disconnected();
}

// The queue pair is being destroyed, cannot be found any more, and still tells its observer.
TEST_F(PairTest, IdDestroyedWhileTheQueuePairIsBeingDestroyed) {
  make_pair();
  engine_->run_sync([this] { qps_.gone = 1; });
  destroy(active_);
  settle();
  engine_->run_sync([this] { qps_.at(1).cut(); });
  EXPECT_EQ(22u, channel_.expect(EventType::kDisconnected).uid);
}

TEST_F(PairTest, ManyConnectionsOneAfterTheOther) {
  new_listener(33);
  for (uint32_t i = 1; i <= 40; ++i) {
    const uint32_t active = new_resolved(1000 + i, listen_address_);
    ASSERT_EQ(0, connect(active, conn_param(i)));
    const uint32_t passive = channel_.expect(EventType::kConnectRequest).id;
    ASSERT_EQ(0, accept(passive, 2000 + i, conn_param(i + 50)));
    channel_.expect(EventType::kEstablished);
    channel_.expect(EventType::kEstablished);
    ASSERT_EQ(0, disconnect(active));
    channel_.expect(EventType::kDisconnected);
    channel_.expect(EventType::kDisconnected);
    EXPECT_EQ(4u, destroy(active));
    EXPECT_EQ(2u, destroy(passive));
  }
}

TEST_F(PairTest, WithoutPeerToPeerThePassiveEndIsEstablishedAtOnce) {
  settings_.peer_to_peer = false;
  make_pair();
  EXPECT_FALSE(qps_.at(1).agreed.peer_to_peer);
}

TEST_F(PairTest, OnOneHostCrcIsOffUnlessSet) {
  make_pair();
  EXPECT_FALSE(qps_.at(1).agreed.crc);
  EXPECT_FALSE(qps_.at(2).agreed.crc);
}

TEST_F(PairTest, CrcIsOnWhenSet) {
  settings_.crc = core::CrcPolicy::kOn;
  make_pair();
  EXPECT_TRUE(qps_.at(1).agreed.crc);
  EXPECT_TRUE(qps_.at(2).agreed.crc);
}

}  // namespace
}  // namespace uiw::cm::test
