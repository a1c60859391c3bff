// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Ids and channels: states, errors, counting, migration, and destruction at every moment.
#include <atomic>
#include <set>
#include <thread>

#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

class LifecycleTest : public ConnectionTest {
 protected:
  int resolve(uint32_t id, const sockaddr_storage& to, const sockaddr_storage& from = {}) {
    return manager_.resolve_address(channel_.channel, id, from, to);
  }
};

TEST_F(LifecycleTest, NumbersAreSmallAndReusedLate) {
  std::set<uint32_t> seen;
  for (int i = 0; i < 2000; ++i) {
    const uint32_t id = new_id(1);
    EXPECT_GT(id, 0u);
    EXPECT_LT(id, 65536u);
    EXPECT_TRUE(seen.insert(id).second);
    destroy(id);
  }
}

TEST(IdTableTest, FullThenFreedThenFoundAgain) {
  auto table = std::make_unique<IdTable>();
  std::vector<Id> ids(IdTable::kEnd);
  for (uint32_t i = 0; i + 1 < IdTable::kEnd; ++i) ASSERT_EQ(0, table->insert(ids[i]));
  EXPECT_EQ(ENOSPC, table->insert(ids.back()));
  EXPECT_EQ(&ids[0], table->next(0));
  EXPECT_EQ(nullptr, table->next(IdTable::kEnd - 1));
  table->remove(ids[777]);
  EXPECT_EQ(nullptr, table->find(ids[777].number));
  EXPECT_EQ(&ids[778], table->next(ids[776].number));
  ASSERT_EQ(0, table->insert(ids.back()));
  EXPECT_EQ(ids[777].number, ids.back().number);
  EXPECT_EQ(nullptr, table->find(IdTable::kEnd));
}

TEST_F(LifecycleTest, UnknownIdsAndForeignChannels) {
  TestChannel other(manager_);
  const uint32_t id = new_id(1);
  uint32_t reported;
  EXPECT_EQ(ENOENT, manager_.destroy_id(channel_.channel, id + 1, reported));
  EXPECT_EQ(ENOENT, manager_.destroy_id(channel_.channel, 1u << 31, reported));
  EXPECT_EQ(EINVAL, manager_.destroy_id(other.channel, id, reported));
  EXPECT_EQ(EINVAL, manager_.listen(other.channel, id, 1));
  EXPECT_EQ(ENOENT, manager_.disconnect(channel_.channel, 0));
}

TEST_F(LifecycleTest, WrongStates) {
  const uint32_t id = new_id(1);
  EXPECT_EQ(EINVAL, connect(id, conn_param(1)));
  EXPECT_EQ(EINVAL, accept(id, 5, conn_param(1)));
  EXPECT_EQ(EINVAL, manager_.reject(channel_.channel, id, {}));
  EXPECT_EQ(EINVAL, disconnect(id));
  EXPECT_EQ(EINVAL, manager_.resolve_route(channel_.channel, id));
  ASSERT_EQ(0, resolve(id, ip("127.0.0.1", 1)));
  channel_.expect(EventType::kAddrResolved);
  EXPECT_EQ(EINVAL, resolve(id, ip("127.0.0.1", 1)));
  EXPECT_EQ(EINVAL, manager_.bind(channel_.channel, id, ip("127.0.0.1", 0)));
  EXPECT_EQ(EINVAL, manager_.listen(channel_.channel, id, 1));
  EXPECT_EQ(EINVAL, connect(id, conn_param(1)));
}

TEST_F(LifecycleTest, WhenADeviceGoesItsIdsAreTold) {
  const device::Device* lo = device::find_by_name("uiw_lo");
  ASSERT_NE(lo, nullptr);
  const uint32_t anywhere = new_id(5);
  ASSERT_EQ(0, manager_.bind(channel_.channel, anywhere, ip("0.0.0.0", 0)));
  const uint32_t id = new_id(6);
  ASSERT_EQ(0, resolve(id, ip("127.0.0.1", 1)));
  channel_.expect(EventType::kAddrResolved);
  const device::Device other;
  manager_.device_changed(other, device::Change::kGone);
  manager_.device_changed(*lo, device::Change::kPortDown);
  manager_.device_changed(*lo, device::Change::kGone);
  const Event event = channel_.expect(EventType::kDeviceRemoval);
  EXPECT_EQ(event.id, id);
  EXPECT_EQ(event.uid, 6u);
  // Nobody else was told, and both can be destroyed.
  Event none;
  EXPECT_EQ(EAGAIN, manager_.next_event(channel_.channel, none));
  destroy(anywhere);
  destroy(id);
}

TEST_F(LifecycleTest, BindErrors) {
  const uint32_t id = new_id(1);
  EXPECT_EQ(EADDRNOTAVAIL, manager_.bind(channel_.channel, id, ip("192.0.2.1", 0)));
  EXPECT_EQ(EINVAL, manager_.bind(channel_.channel, id, ip("fe80::1", 0)));
  sockaddr_storage odd{};
  odd.ss_family = AF_UNIX;
  EXPECT_EQ(EAFNOSUPPORT, manager_.bind(channel_.channel, id, odd));
  const uint32_t listener = new_listener(33);
  EXPECT_EQ(EADDRINUSE, manager_.bind(channel_.channel, id, listen_address_));
  destroy(listener);
  // The port is free as soon as the listener is destroyed.
  EXPECT_EQ(0, manager_.bind(channel_.channel, id, listen_address_));
  EXPECT_EQ(EINVAL, manager_.bind(channel_.channel, id, listen_address_));
  EXPECT_EQ(0, manager_.listen(channel_.channel, id, 1));
}

// libfabric asks in this way which devices there are.
TEST_F(LifecycleTest, LoopbackWithoutPortChoosesNoDevice) {
  for (const char* address : {"127.0.0.1", "127.1.2.3", "::1"}) {
    SCOPED_TRACE(address);
    Route route;
    const uint32_t open = new_id(1), named = new_id(2);
    ASSERT_EQ(0, manager_.bind(channel_.channel, open, ip(address, 0)));
    ASSERT_EQ(0, manager_.query(channel_.channel, open, route));
    EXPECT_EQ(0u, route.node_guid);
    const sockaddr_storage source = route.source;
    destroy(open);
    ASSERT_EQ(0, manager_.bind(channel_.channel, named, source));
    ASSERT_EQ(0, manager_.query(channel_.channel, named, route));
    EXPECT_NE(0u, route.node_guid);
    destroy(named);
  }
}

TEST_F(LifecycleTest, LoopbackWithoutPortHasItsDeviceWhenItIsUsed) {
  const uint32_t listener = new_id(1), client = new_id(2);
  ASSERT_EQ(0, manager_.bind(channel_.channel, listener, ip("127.0.0.1", 0)));
  ASSERT_EQ(0, manager_.listen(channel_.channel, listener, 1));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, listener, route));
  EXPECT_NE(0u, route.node_guid);
  ASSERT_EQ(0, manager_.bind(channel_.channel, client, ip("127.0.0.1", 0)));
  ASSERT_EQ(0, resolve(client, route.source));
  channel_.expect(EventType::kAddrResolved);
  ASSERT_EQ(0, manager_.query(channel_.channel, client, route));
  EXPECT_NE(0u, route.node_guid);
}

TEST_F(LifecycleTest, OnePortForOneBoundIdUnlessBothAskForReuse) {
  const uint32_t first = new_id(1), second = new_id(2);
  const int on = 1;
  const core::Bytes value{reinterpret_cast<const uint8_t*>(&on), sizeof on};
  ASSERT_EQ(0, manager_.set_option(channel_.channel, first, Manager::Option::kReuseAddress, value));
  ASSERT_EQ(0, manager_.bind(channel_.channel, first, ip("127.0.0.1", 0)));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, first, route));
  EXPECT_EQ(EADDRINUSE, manager_.bind(channel_.channel, second, route.source));
  ASSERT_EQ(0,
            manager_.set_option(channel_.channel, second, Manager::Option::kReuseAddress, value));
  EXPECT_EQ(0, manager_.bind(channel_.channel, second, route.source));
  // Who listens shares with nobody.
  EXPECT_EQ(EADDRINUSE, manager_.listen(channel_.channel, first, 1));
  EXPECT_EQ(EADDRINUSE, manager_.listen(channel_.channel, second, 1));
  destroy(second);
  EXPECT_EQ(0, manager_.listen(channel_.channel, first, 1));
}

TEST_F(LifecycleTest, PortOfAForeignListenerIsInUse) {
  RawPeer foreign;
  const sockaddr_storage address = foreign.listen();
  const uint32_t id = new_id(1);
  EXPECT_EQ(EADDRINUSE, manager_.bind(channel_.channel, id, address));
}

TEST_F(LifecycleTest, ListenWithoutBindingTakesAPort) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0, manager_.listen(channel_.channel, id, 0));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, id, route));
  EXPECT_EQ(AF_INET, route.source.ss_family);
  EXPECT_NE(0, transport::port_of(route.source));
  EXPECT_EQ(EINVAL, manager_.listen(channel_.channel, id, 0));
}

TEST_F(LifecycleTest, ResolveFindsSourceAndDevice) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0, resolve(id, ip("127.0.0.1", 9)));
  channel_.expect(EventType::kAddrResolved);
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, id, route));
  EXPECT_TRUE(transport::same_host(ip("127.0.0.1", 0), route.source));
  EXPECT_EQ(9, transport::port_of(route.destination));
  EXPECT_NE(0u, route.node_guid);
}

TEST_F(LifecycleTest, WildcardDestinationIsThisHost) {
  const uint32_t id = new_id(1), from = new_id(2);
  ASSERT_EQ(0, resolve(id, ip("0.0.0.0", 9)));
  channel_.expect(EventType::kAddrResolved);
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, id, route));
  EXPECT_TRUE(transport::same_host(ip("127.0.0.1", 0), route.destination));
  ASSERT_EQ(0, resolve(from, ip("0.0.0.0", 9), ip("127.0.0.7", 0)));
  channel_.expect(EventType::kAddrResolved);
  ASSERT_EQ(0, manager_.query(channel_.channel, from, route));
  EXPECT_TRUE(transport::same_host(ip("127.0.0.7", 0), route.destination));
  EXPECT_TRUE(transport::same_host(ip("127.0.0.7", 0), route.source));
}

TEST_F(LifecycleTest, ResolveErrors) {
  const uint32_t id = new_id(1);
  EXPECT_EQ(EINVAL, resolve(id, ip("127.0.0.1", 9), ip("::1", 0)));
  EXPECT_EQ(EADDRNOTAVAIL, resolve(id, ip("127.0.0.1", 9), ip("192.0.2.1", 0)));
  sockaddr_storage odd{};
  odd.ss_family = AF_UNIX;
  EXPECT_EQ(EAFNOSUPPORT, resolve(id, odd));
  // Without a scope there is no way to a link-local address.
  ASSERT_EQ(0, resolve(id, ip("fe80::1", 9)));
  const Event event = channel_.next();
  EXPECT_EQ(EventType::kAddrError, event.type);
  EXPECT_LT(event.status, 0);
  // Another attempt is possible.
  ASSERT_EQ(0, resolve(id, ip("127.0.0.1", 9)));
  channel_.expect(EventType::kAddrResolved);
}

TEST_F(LifecycleTest, DatagramIdsCannotConnect) {
  uint32_t id;
  for (PortSpace space : {PortSpace::kUdp, PortSpace::kIpoib}) {
    ASSERT_EQ(0, manager_.create_id(channel_.channel, 1, space, Service::kConnection, id));
    ASSERT_EQ(0, resolve(id, ip("127.0.0.1", 9)));
    channel_.expect(EventType::kAddrResolved);
    ASSERT_EQ(0, manager_.resolve_route(channel_.channel, id));
    channel_.expect(EventType::kRouteResolved);
    EXPECT_EQ(EOPNOTSUPP, connect(id, conn_param(1)));
    ASSERT_EQ(0, manager_.create_id(channel_.channel, 1, space, Service::kConnection, id));
    ASSERT_EQ(0, manager_.bind(channel_.channel, id, ip("127.0.0.1", 0)));
    EXPECT_EQ(EOPNOTSUPP, manager_.listen(channel_.channel, id, 1));
  }
  EXPECT_EQ(EINVAL, manager_.create_id(channel_.channel, 1, static_cast<PortSpace>(7),
                                       Service::kConnection, id));
}

TEST_F(LifecycleTest, DestroyPurgesEventsAndCountsTheReportedOnes) {
  const uint32_t id = new_id(1), other = new_id(2);
  ASSERT_EQ(0, resolve(id, ip("127.0.0.1", 9)));
  channel_.expect(EventType::kAddrResolved);
  ASSERT_EQ(0, resolve(other, ip("127.0.0.1", 9)));
  ASSERT_EQ(0, manager_.resolve_route(channel_.channel, id));
  EXPECT_EQ(2, channel_.queued());
  EXPECT_EQ(1u, destroy(id));
  EXPECT_EQ(1, channel_.queued());
  EXPECT_EQ(2u, channel_.expect(EventType::kAddrResolved).uid);
}

TEST_F(LifecycleTest, MigrationTakesEventsAlong) {
  TestChannel other(manager_);
  const uint32_t id = new_id(1), stays = new_id(2);
  ASSERT_EQ(0, resolve(id, ip("127.0.0.1", 9)));
  ASSERT_EQ(0, resolve(stays, ip("127.0.0.1", 9)));
  ASSERT_EQ(0, manager_.resolve_route(channel_.channel, id));
  channel_.expect(EventType::kAddrResolved);
  uint32_t reported = 99;
  ASSERT_EQ(0, manager_.migrate_id(other.channel, channel_.channel, id, reported));
  EXPECT_EQ(1u, reported);
  EXPECT_EQ(1u, other.expect(EventType::kRouteResolved).uid);
  EXPECT_EQ(2u, channel_.expect(EventType::kAddrResolved).uid);
  EXPECT_EQ(EINVAL, manager_.migrate_id(other.channel, channel_.channel, id, reported));
  EXPECT_EQ(0, manager_.migrate_id(other.channel, other.channel, id, reported));
  EXPECT_EQ(2u, reported);
}

TEST_F(LifecycleTest, ListenerMigratesWithUnfetchedRequests) {
  TestChannel other(manager_);
  const uint32_t listener = new_listener(33);
  RawPeer peer;
  peer.connect(listen_address_);
  peer.send(request_frame());
  while (channel_.queued() == 0) settle();
  uint32_t reported;
  ASSERT_EQ(0, manager_.migrate_id(other.channel, channel_.channel, listener, reported));
  const Event event = other.expect(EventType::kConnectRequest);
  EXPECT_EQ(0, manager_.accept(other.channel, event.id, 22, conn_param(2)));
  peer.receive_frame(mpa::FrameKind::kReply);
  peer.send({1});
  other.expect(EventType::kEstablished);
}

TEST_F(LifecycleTest, UnfetchedRequestCannotBeGuessed) {
  new_listener(33);
  RawPeer peer;
  peer.connect(listen_address_);
  peer.send(request_frame());
  while (channel_.queued() == 0) settle();
  uint32_t reported;
  for (uint32_t n = 0; n < 100; ++n) {
    Route route;
    if (manager_.query(channel_.channel, n, route) == 0) {
      EXPECT_EQ(listen_address_.ss_family, route.source.ss_family);
      EXPECT_EQ(0, route.destination.ss_family) << n;
    }
  }
  const Event event = channel_.expect(EventType::kConnectRequest);
  EXPECT_EQ(0, manager_.destroy_id(channel_.channel, event.id, reported));
}

TEST_F(LifecycleTest, EventsOfAnUnacceptedRequestAreDropped) {
  new_listener(33);
  RawPeer peer;
  peer.connect(listen_address_);
  peer.send(request_frame());
  const Event event = channel_.expect(EventType::kConnectRequest);
  EXPECT_EQ(EINVAL, manager_.write_event(channel_.channel, event.id, EventType::kUser, 0, 1));
  peer.reset();
  settle();
  EXPECT_EQ(0, channel_.queued());
  EXPECT_EQ(0, disconnect(event.id));
}

TEST_F(LifecycleTest, ApplicationsOwnEvents) {
  const uint32_t id = new_id(7);
  EXPECT_EQ(EINVAL, manager_.write_event(channel_.channel, id, EventType::kEstablished, 0, 1));
  ASSERT_EQ(0, manager_.write_event(channel_.channel, id, EventType::kUser, -5, 0x123456789a));
  const Event event = channel_.expect(EventType::kUser, -5);
  EXPECT_EQ(7u, event.uid);
  EXPECT_EQ(0x123456789au, event.argument);
}

TEST_F(LifecycleTest, ClosedChannelAnswersEbadf) {
  const uint32_t id = new_id(1);
  channel_.close();
  uint32_t number;
  EXPECT_EQ(EBADF,
            manager_.create_id(channel_.channel, 1, PortSpace::kTcp, Service::kConnection, number));
  EXPECT_EQ(EBADF, manager_.disconnect(channel_.channel, id));
}

// Every stage that a connection passes through, ended there by destroy_id() or by closing the
// channel: nothing may be left behind (sanitizers) or come afterwards.
TEST_F(LifecycleTest, EndInEveryState) {
  for (bool by_close : {false, true}) {
    for (int stage = 0; stage < 9; ++stage) {
      SCOPED_TRACE(stage);
      TestChannel mine(manager_);
      Channel& channel = mine.channel;
      RawPeer listener, peer;
      uint32_t id = new_id(5, &mine), doomed = id, reported;
      const sockaddr_storage to = listener.listen();
      if (stage == 1) {
        ASSERT_EQ(0, manager_.bind(channel, id, ip("127.0.0.1", 0)));
      }
      if (stage >= 2) {
        ASSERT_EQ(0, manager_.resolve_address(channel, id, {}, to));
      }
      if (stage >= 3) {
        ASSERT_EQ(0, manager_.resolve_route(channel, id));
      }
      if (stage >= 4) {
        ASSERT_EQ(0, manager_.connect(channel, id, conn_param(1)));
      }
      if (stage >= 5) {
        RawPeer accepted = listener.accept();
        accepted.receive_frame(mpa::FrameKind::kRequest);
        if (stage == 6) {
          listener.close();
          accepted.close();  // falls back meanwhile
        }
        peer = std::move(accepted);
      }
      if (stage >= 7) {
        const uint32_t passive = new_id(6, &mine);
        ASSERT_EQ(0, manager_.bind(channel, passive, ip("127.0.0.1", 0)));
        ASSERT_EQ(0, manager_.listen(channel, passive, 0));
        Route route;
        ASSERT_EQ(0, manager_.query(channel, passive, route));
        RawPeer client;
        client.connect(route.source);
        if (stage == 8) {
          client.send(request_frame());
          Event event = mine.next();
          while (event.type != EventType::kConnectRequest) event = mine.next();
          ASSERT_EQ(0, manager_.accept(channel, event.id, 7, conn_param(3)));
          doomed = event.id;
        } else {
          doomed = passive;
        }
      }
      if (!by_close) {
        ASSERT_EQ(0, manager_.destroy_id(channel, doomed, reported));
      }
      mine.close();
      engine_->run_sync([this] {
        qps_ = {};
        qps_.engine = &*engine_;
      });
    }
  }
}

// Ids made, connected and destroyed by several threads at once, on one channel, for TSan.
TEST_F(LifecycleTest, ManyThreads) {
  new_listener(33);
  std::thread server([&] {
    for (;;) {
      Event event = channel_.next();
      if (event.type == EventType::kUser) return;
      if (event.type != EventType::kConnectRequest) continue;
      if (event.id % 2 == 0) {
        manager_.reject(channel_.channel, event.id, {});
      } else {
        accept(event.id, 22, conn_param(50 + event.id % 40));
      }
      uint32_t reported;
      manager_.destroy_id(channel_.channel, event.id, reported);
    }
  });
  std::vector<std::thread> clients;
  for (uint32_t n = 0; n < 3; ++n) {
    clients.emplace_back([&, n] {
      TestChannel mine(manager_);
      for (int i = 0; i < 30; ++i) {
        const uint32_t id = new_id(1, &mine);
        uint32_t reported;
        EXPECT_EQ(0, manager_.resolve_address(mine.channel, id, {}, listen_address_));
        EXPECT_EQ(0, manager_.resolve_route(mine.channel, id));
        EXPECT_EQ(0, manager_.connect(mine.channel, id, conn_param(1 + n)));
        mine.next();
        mine.next();
        if (i % 3 != 0) mine.next();
        EXPECT_EQ(0, manager_.destroy_id(mine.channel, id, reported));
        EXPECT_EQ(i % 3 != 0 ? 3u : 2u, reported);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const uint32_t last = new_id(44);
  ASSERT_EQ(0, manager_.write_event(channel_.channel, last, EventType::kUser, 0, 0));
  server.join();
}

// The engine is given back with the last channel and taken again with the next connection.
TEST_F(LifecycleTest, ChannelsComeAndGo) {
  channel_.close();
  engine_ = {};
  for (int i = 0; i < 5; ++i) {
    TestChannel mine(manager_);
    const uint32_t id = new_id(1, &mine);
    ASSERT_EQ(0, manager_.listen(mine.channel, id, 1));
    Route route;
    ASSERT_EQ(0, manager_.query(mine.channel, id, route));
    RawPeer peer;
    peer.connect(ip("127.0.0.1", transport::port_of(route.source)));
    peer.send(request_frame());
    mine.expect(EventType::kConnectRequest);
    mine.close();
    EXPECT_TRUE(peer.receive_frame(mpa::FrameKind::kReply).reject);
  }
  engine_ = std::move(*engine::EngineRef::acquire());
}

}  // namespace
}  // namespace uiw::cm::test
