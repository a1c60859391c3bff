// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is said of calls that are refused.
#include "cm/refusals.h"

#include <gtest/gtest.h>

#include <set>

#include "core/explain.h"
#include "support/refusals.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

using uiw::test::expect_refused;
using uiw::test::said_once;

class RefusalsTest : public ConnectionTest {
 protected:
  RefusalsTest() { core::forget_explained(); }
};

TEST(IdStateTest, EachHasAClauseOfItsOwn) {
  std::set<std::string> clauses;
  for (int state = 0; state <= static_cast<int>(IdState::kEnded); ++state)
    clauses.insert(clause_of(static_cast<IdState>(state)));
  EXPECT_EQ(clauses.size(), static_cast<size_t>(IdState::kEnded) + 1);
  EXPECT_EQ(clauses.count(""), 0u);
}

TEST_F(RefusalsTest, ConnectBeforeTheRouteIsResolved) {
  const uint32_t id = new_id(1);
  expect_refused(EINVAL, {"rdma_connect: ", "no address yet", "RDMA_CM_EVENT_ROUTE_RESOLVED"},
                 [&] { return connect(id, conn_param(1)); });
}

TEST_F(RefusalsTest, AcceptWithTheListener) {
  const uint32_t id = new_listener(1);
  expect_refused(EINVAL, {"rdma_accept: ", "it listens", "RDMA_CM_EVENT_CONNECT_REQUEST"},
                 [&] { return accept(id, 5, conn_param(1)); });
}

// After one the request is over: it cannot be asked twice.
class AcceptRefusalsTest : public RefusalsTest {
 protected:
  void expect_said(const std::vector<std::string>& words, const ConnParam& param) {
    RawPeer peer = dial();
    const uint32_t id = request(peer, request_frame()).id;
    testing::internal::CaptureStderr();
    EXPECT_EQ(EINVAL, accept(id, 5, param));
    said_once(words);
  }
};

TEST_F(AcceptRefusalsTest, WithoutAQueuePairOrWithOneThatIsTaken) {
  new_listener(1);
  expect_said({"rdma_accept: ", "no queue pair", "rdma_create_qp"}, conn_param(0));
  ASSERT_EQ(0, qps_.claim(7));
  expect_said({"rdma_accept: queue pair 0x000007 ", "connected"}, conn_param(7));
}

TEST_F(AcceptRefusalsTest, WithMorePrivateDataThanThePeerTakes) {
  new_listener(1);
  expect_said({"rdma_accept: private_data_len is 252, there is room for 251 bytes"},
              conn_param(1, std::string(252, 'x')));
}

// The peer hears nothing of it, and the id may try again.
TEST_F(RefusalsTest, ConnectWithoutAQueuePair) {
  new_listener(1);
  const uint32_t id = new_resolved(2, listen_address_);
  expect_refused(EINVAL, {"rdma_connect: ", "no queue pair", "rdma_create_qp"},
                 [&] { return connect(id, conn_param(0)); });
  EXPECT_EQ(0, connect(id, conn_param(7)));
  channel_.expect(EventType::kConnectRequest);
  settle();
  EXPECT_EQ(0, channel_.queued());
}

TEST_F(RefusalsTest, ConnectByAQueuePairThatGoesMeanwhileIsSaidWhereItsEventComes) {
  new_listener(1);
  const uint32_t id = new_resolved(2, listen_address_);
  testing::internal::CaptureStderr();
  EXPECT_EQ(0, connect(id, conn_param(7)));
  const uint32_t request = channel_.expect(EventType::kConnectRequest).id;
  engine_->run_sync([&] { qps_.gone = 7; });
  EXPECT_EQ(0, accept(request, 3, conn_param(2)));
  for (bool ended = false; !ended;) {
    const Event event = channel_.next();
    ended = event.type == EventType::kConnectError && event.uid == 2;
  }
  said_once({"rdma_connect: ", "no queue pair", "rdma_create_qp"});
}

TEST_F(RefusalsTest, AddressesThatAProgramNamesWithAPort) {
  const uint32_t id = new_id(1);
  expect_refused(EADDRNOTAVAIL,
                 {"rdma_bind_addr: 192.0.2.1, port 7174: ", "no address of this host"},
                 [&] { return manager_.bind(channel_.channel, id, ip("192.0.2.1", 7174)); });
  new_listener(2);
  const uint32_t other = new_id(3);
  const std::string port = "port " + std::to_string(transport::port_of(listen_address_));
  expect_refused(EADDRINUSE, {"rdma_bind_addr: 127.0.0.1, " + port, "taken"},
                 [&] { return manager_.bind(channel_.channel, other, listen_address_); });
}

TEST_F(RefusalsTest, CallsOfIdsThatAreNotConnected) {
  const uint32_t id = new_id(1);
  expect_refused(EINVAL, {"rdma_disconnect: ", "no address yet", "when it is connected"},
                 [&] { return disconnect(id); });
  const uint32_t other = new_id(2);
  expect_refused(EINVAL, {"rdma_reject: ", "no address yet", "RDMA_CM_EVENT_CONNECT_REQUEST"},
                 [&] { return manager_.reject(channel_.channel, other, {}); });
}

TEST_F(RefusalsTest, RejectWithMorePrivateDataThanThereIsRoomFor) {
  const std::string data(1000, 'x');
  const uint32_t id = new_id(1);
  expect_refused(EINVAL, {"rdma_reject: private_data_len is 1000, there is room for "}, [&] {
    return manager_.reject(channel_.channel, id,
                           {reinterpret_cast<const uint8_t*>(data.data()), data.size()});
  });
}

TEST_F(RefusalsTest, DestinationsThatCannotBeMeant) {
  const uint32_t id = new_id(1);
  const auto resolve = [&](const sockaddr_storage& from, const sockaddr_storage& to) {
    return [=, this] { return manager_.resolve_address(channel_.channel, id, from, to); };
  };
  expect_refused(EAFNOSUPPORT, {"rdma_resolve_addr: the destination is neither"},
                 resolve({}, sockaddr_storage{}));
  expect_refused(EINVAL, {"rdma_resolve_addr: source and destination", "IPv6"},
                 resolve(ip("127.0.0.1", 0), ip("::1", 7174)));
  EXPECT_EQ(0, resolve({}, ip("127.0.0.1", 7174))());
  expect_refused(EINVAL, {"rdma_resolve_addr: not with this id now: its address is resolved"},
                 resolve({}, ip("127.0.0.1", 7174)));
}

TEST_F(RefusalsTest, OptionsOfIdsThatHaveAnAddress) {
  const int off = 0;
  const uint32_t id = new_id(1);
  EXPECT_EQ(0, manager_.bind(channel_.channel, id, ip("127.0.0.1", 0)));
  expect_refused(EINVAL, {"rdma_set_option of RDMA_OPTION_ID_REUSEADDR", "before rdma_bind_addr"},
                 [&] {
                   return manager_.set_option(channel_.channel, id, Manager::Option::kReuseAddress,
                                              {reinterpret_cast<const uint8_t*>(&off), sizeof off});
                 });
}

TEST_F(RefusalsTest, EachWrongCallOfAnId) {
  const uint32_t id = new_id(1);
  expect_refused(EINVAL, {"rdma_connect: not with this id now"},
                 [&] { return connect(id, conn_param(1)); });
  expect_refused(EINVAL, {"rdma_accept: not with this id now"},
                 [&] { return accept(id, 5, conn_param(1)); });
  expect_refused(EINVAL, {"rdma_disconnect: not with this id now"},
                 [&] { return manager_.disconnect(channel_.channel, id); });
}

TEST_F(RefusalsTest, EachReasonWhyAnAddressCannotBeHad) {
  const uint32_t id = new_id(1);
  const auto bind = [&](const char* address) {
    return [=, this] { return manager_.bind(channel_.channel, id, ip(address, 7174)); };
  };
  expect_refused(EADDRNOTAVAIL, {"rdma_bind_addr: 192.0.2.1, port 7174: it is no address"},
                 bind("192.0.2.1"));
  expect_refused(EINVAL, {"rdma_bind_addr: fe80::1, port 7174: it is a link-local address"},
                 bind("fe80::1"));
}

TEST_F(RefusalsTest, MulticastOfTheIwarpFace) {
  const uint32_t id = new_id(1);
  uint32_t membership;
  expect_refused(EOPNOTSUPP, {"rdma_join_multicast: ", "UIWARP_FACE=roce"}, [&] {
    return manager_.join(channel_.channel, id, 7, ip("239.1.2.3", 0), membership);
  });
}

class InfinibandRefusalsTest : public ConnectionTest {
 protected:
  InfinibandRefusalsTest() : ConnectionTest(device::CmRules::kInfiniband) {
    core::forget_explained();
  }
};

TEST_F(InfinibandRefusalsTest, MulticastOfAnIdThatHasAnAddressAndARoute) {
  space_ = PortSpace::kUdp;
  const uint32_t id = new_resolved(1, ip("127.0.0.1", 9));
  uint32_t membership;
  expect_refused(EINVAL, {"rdma_join_multicast: not with this id now: its route is resolved"}, [&] {
    return manager_.join(channel_.channel, id, 7, ip("239.1.2.3", 0), membership);
  });
}

// Many programs do not know rdma_init_qp_attr(), which librdmacm calls for them.
TEST_F(InfinibandRefusalsTest, AttributesWhichSeveralCallsOfLibrdmacmAskFor) {
  const uint32_t id = new_resolved(1, ip("127.0.0.1", 9));
  expect_refused(EINVAL,
                 {"rdma_init_qp_attr", "rdma_create_qp", "rdma_accept", "rdma_get_cm_event"},
                 [&] { return manager_.refuse_attributes(channel_.channel, id); });
}

TEST_F(RefusalsTest, NothingIsSaidOfProgramsThatLookForDevices) {
  const uint32_t id = new_id(1);
  expect_refused(EADDRNOTAVAIL, {},
                 [&] { return manager_.bind(channel_.channel, id, ip("192.0.2.1", 0)); });
}

}  // namespace
}  // namespace uiw::cm::test
