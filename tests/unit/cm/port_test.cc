// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whose a port is, from rdma_bind_addr() on: as Linux's cma_check_port().
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

class PortTest : public ConnectionTest {
 protected:
  sockaddr_storage source_of(uint32_t id) {
    Route route;
    EXPECT_EQ(0, manager_.query(channel_.channel, id, route));
    return route.source;
  }
  int bind(uint32_t id, const sockaddr_storage& address) {
    return manager_.bind(channel_.channel, id, address);
  }
  // As any program, with SO_REUSEADDR. 0 or errno.
  static int bind_plainly(const sockaddr_storage& address) {
    core::Result<int> fd = transport::bind_tcp(address, {.reuse_address = true});
    if (!fd) return fd.error();
    close(*fd);
    return 0;
  }
  // A connection of the listener's that the program has been told of.
  RawPeer dial_and_accept(uint32_t qp_num) {
    RawPeer peer = dial();
    EXPECT_EQ(0, accept(request(peer, request_frame()).id, 22, conn_param(qp_num)));
    channel_.expect(EventType::kEstablished);
    peer.receive_frame(mpa::FrameKind::kReply);
    return peer;
  }
  int listen_again() {
    const uint32_t id = new_id(1);
    if (const int error = bind(id, listen_address_)) return error;
    return manager_.listen(channel_.channel, id, 0);
  }
};

TEST_F(PortTest, NobodyElseGetsOneThatIsBound) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0, bind(id, ip("0.0.0.0", 0)));
  const sockaddr_storage here = source_of(id);
  EXPECT_EQ(EADDRINUSE, bind_plainly(here));
  EXPECT_EQ(EADDRINUSE, bind_plainly(ip("127.0.0.1", transport::port_of(here))));
  // As one of another process.
  Manager others(qps_, settings_);
  {
    TestChannel channel(others);
    uint32_t other;
    ASSERT_EQ(0,
              others.create_id(channel.channel, 1, PortSpace::kTcp, Service::kConnection, other));
    EXPECT_EQ(EADDRINUSE, others.bind(channel.channel, other, here));
  }
  EXPECT_EQ(0, manager_.listen(channel_.channel, id, 1));
  EXPECT_EQ(EADDRINUSE, bind_plainly(here));
  destroy(id);
  EXPECT_EQ(0, bind_plainly(here));
}

TEST_F(PortTest, ThatOfEveryAddressIsIpv4sToo) {
  const uint32_t v6 = new_id(1), v4 = new_id(2);
  ASSERT_EQ(0, bind(v6, ip("::", 0)));
  const uint16_t port = transport::port_of(source_of(v6));
  EXPECT_EQ(EADDRINUSE, bind(v4, ip("0.0.0.0", port)));
  EXPECT_EQ(EADDRINUSE, bind(v4, ip("127.0.0.1", port)));
  destroy(v6);
  EXPECT_EQ(0, bind(v4, ip("0.0.0.0", port)));
  EXPECT_EQ(EADDRINUSE, bind(new_id(3), ip("::", port)));
}

TEST_F(PortTest, OfAnIdThatConnectsFromThereUntilItIsDestroyed) {
  RawPeer listener;
  const sockaddr_storage to = listener.listen();
  const uint32_t id = new_id(1), other = new_id(2);
  ASSERT_EQ(0, bind(id, ip("127.0.0.1", 0)));
  const sockaddr_storage from = source_of(id);
  ASSERT_EQ(0, manager_.resolve_address(channel_.channel, id, {}, to));
  channel_.expect(EventType::kAddrResolved);
  ASSERT_EQ(0, manager_.resolve_route(channel_.channel, id));
  channel_.expect(EventType::kRouteResolved);
  ASSERT_EQ(0, connect(id, conn_param(1)));
  EXPECT_EQ(EADDRINUSE, bind(other, from));
  RawPeer peer = listener.accept();
  EXPECT_EQ(EADDRINUSE, bind(other, from));
  destroy(id);
  settle();
  EXPECT_EQ(0, bind(other, from));
}

TEST_F(PortTest, AListenerComesAgainBesideItsConnections) {
  destroy(new_listener(1));
  EXPECT_EQ(0, listen_again());
  const uint32_t id = new_listener(1);
  RawPeer stays = dial_and_accept(1);
  destroy(id);
  EXPECT_EQ(0, listen_again());
  EXPECT_EQ(TCP_ESTABLISHED, stays.state());
  RawPeer next = dial_and_accept(2);
}

// This end closes first.
TEST_F(PortTest, AListenerComesAgainBesideTimeWait) {
  const uint32_t id = new_listener(1);
  {
    RawPeer peer = dial();
    const uint32_t request_id = request(peer, request_frame()).id;
    destroy(request_id);  // rejects it
    peer.receive_all();
  }
  settle();
  destroy(id);
  EXPECT_EQ(0, listen_again());
  RawPeer next = dial_and_accept(1);
}

}  // namespace
}  // namespace uiw::cm::test
