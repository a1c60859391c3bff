// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What librdmacm is told of ids for datagrams and of multicast groups.
#include <infiniband/verbs.h>

#include "device/device.h"
#include "device/gid_table.h"
#include "unit/vkernel/ucma_rig.h"

namespace uiw::vkernel::test {
namespace {

using cm::test::ip;

// Of the kernel's rdma_cm_event_type.
constexpr uint32_t kConnectRequest = 4, kUnreachable = 7, kEstablished = 9, kMulticastJoin = 12;
constexpr uint8_t kLoopbackGid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
constexpr uint8_t kGroupGid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
constexpr uint32_t kQkey = 0x01234567;  // RDMA_UDP_QKEY

class UcmaDatagramTest : public UcmaTest {
 protected:
  UcmaDatagramTest() : UcmaTest(device::CmRules::kInfiniband) {}

  void SetUp() override {
    UcmaTest::SetUp();
    fd_ = open_channel();
  }
  uint32_t new_bound(uint64_t uid) {
    const uint32_t id = create_id(fd_, uid, RDMA_PS_UDP);
    EXPECT_EQ(0, bind_ip(fd_, id, ip("127.0.0.1", 0)));
    return id;
  }
  // Id `active_` (uid 200) asks a listener (uid 100).
  rdma_ucm_event_resp make_request() {
    const uint32_t listener = new_bound(100);
    EXPECT_EQ(0, listen(fd_, listener));
    const rdma_ucm_query_route_resp route = query_route(fd_, listener);
    active_ = create_id(fd_, 200, RDMA_PS_UDP);
    sockaddr_storage to{};
    memcpy(&to, &route.src_addr, sizeof route.src_addr);
    resolve_ip(fd_, active_, to);
    get_event(fd_, 0);
    EXPECT_EQ(0, command(fd_, kResolveRoute, rdma_ucm_resolve_route{active_, 2000}));
    get_event(fd_, 2);
    rdma_ucm_connect connect{};
    connect.conn_param = param(0);
    memcpy(connect.conn_param.private_data, "ask", 3);
    connect.conn_param.private_data_len = 3;
    connect.id = active_;
    EXPECT_EQ(0, command(fd_, kConnect, connect));
    return get_event(fd_, kConnectRequest);
  }
  void expect_own_gid(const ib_uverbs_ah_attr& vector) {
    EXPECT_EQ(1, vector.is_global);
    EXPECT_EQ(1, vector.port_num);
    const device::Device* device = device::find_by_address(ip("127.0.0.1", 0));
    const auto own =
        device::gid_at(device::state_of(*device), device::face(), vector.grh.sgid_index);
    ASSERT_TRUE(own);
    EXPECT_EQ(0, memcmp(&own->address, kLoopbackGid, 16));
  }
  int join(uint32_t id, uint64_t uid, uint16_t flags, uint16_t room = kJoin.out) {
    rdma_ucm_join_mcast body{};
    body.response = address_of(&membership_);
    body.uid = uid;
    body.id = id;
    body.addr_size = sizeof(sockaddr_in);
    body.join_flags = flags;
    const sockaddr_storage group = ip("239.1.2.3", 0);
    memcpy(&body.addr, &group, sizeof group);
    return command(fd_, kJoin, body, room);
  }
  int leave(uint32_t membership) {
    return command(fd_, kLeave, rdma_ucm_destroy_id{address_of(&reported_), membership, 0});
  }

  int fd_ = -1;
  uint32_t active_ = 0, membership_ = 0, reported_ = 99;
};

TEST_F(UcmaDatagramTest, WholeResolution) {
  const rdma_ucm_event_resp request = make_request();
  EXPECT_EQ(100u, request.uid);
  EXPECT_EQ(3, request.param.ud.private_data_len);
  EXPECT_EQ(0, memcmp(request.param.ud.private_data, "ask", 3));
  EXPECT_EQ(1u, query_route(fd_, request.id).num_paths);
  rdma_ucm_accept accept{};
  accept.uid = 300;
  accept.id = request.id;
  accept.conn_param = param(0x4711);
  memcpy(accept.conn_param.private_data, "me", 2);
  accept.conn_param.private_data_len = 2;
  ASSERT_EQ(0, command(fd_, kAccept, accept));
  const rdma_ucm_event_resp answer = get_event(fd_, kEstablished);
  EXPECT_EQ(200u, answer.uid);
  const rdma_ucm_ud_param& ud = answer.param.ud;
  EXPECT_EQ(0x4711u, ud.qp_num);
  EXPECT_EQ(kQkey, ud.qkey);
  EXPECT_EQ(2, ud.private_data_len);
  EXPECT_EQ(0, memcmp(ud.private_data, "me", 2));
  EXPECT_EQ(0, memcmp(ud.ah_attr.grh.dgid, kLoopbackGid, 16));
  expect_own_gid(ud.ah_attr);
}

TEST_F(UcmaDatagramTest, ARejectBringsItsPrivateData) {
  rdma_ucm_reject reject{};
  reject.id = make_request().id;
  reject.private_data_len = 2;
  memcpy(reject.private_data, "no", 2);
  ASSERT_EQ(0, command(fd_, kReject, reject));
  const rdma_ucm_event_resp event = get_event(fd_, kUnreachable);
  EXPECT_EQ(2u, event.status);
  EXPECT_EQ(2, event.param.ud.private_data_len);
  EXPECT_EQ(0, memcmp(event.param.ud.private_data, "no", 2));
}

TEST_F(UcmaDatagramTest, AttributesOfTheQueuePairAtAnyStage) {
  const uint32_t unbound = create_id(fd_, 1, RDMA_PS_UDP), bound = new_bound(2);
  ib_uverbs_qp_attr attr{};
  auto ask = [&](uint32_t id, uint32_t state) {
    attr = {};
    return command(fd_, kInitQpAttr, rdma_ucm_init_qp_attr{address_of(&attr), id, state});
  };
  EXPECT_EQ(EINVAL, ask(unbound, IBV_QPS_INIT));
  for (uint32_t id : {bound, make_request().id}) {
    ASSERT_EQ(0, ask(id, IBV_QPS_INIT));
    EXPECT_EQ(static_cast<uint32_t>(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
              attr.qp_attr_mask);
    EXPECT_EQ(static_cast<uint32_t>(IBV_QPS_INIT), attr.qp_state);
    EXPECT_EQ(1, attr.port_num);
    EXPECT_EQ(kQkey, attr.qkey);
    ASSERT_EQ(0, ask(id, IBV_QPS_RTR));
    EXPECT_EQ(static_cast<uint32_t>(IBV_QP_STATE), attr.qp_attr_mask);
    ASSERT_EQ(0, ask(id, IBV_QPS_RTS));
    EXPECT_EQ(static_cast<uint32_t>(IBV_QP_STATE | IBV_QP_SQ_PSN), attr.qp_attr_mask);
    EXPECT_EQ(EINVAL, ask(id, IBV_QPS_SQD));
  }
}

TEST_F(UcmaDatagramTest, AGroupIsAGidAndAllQueuePairs) {
  const uint32_t id = new_bound(1);
  for (uint16_t flags : {RDMA_MC_JOIN_FLAG_FULLMEMBER, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER}) {
    ASSERT_EQ(0, join(id, 70u + flags, flags));
    const rdma_ucm_event_resp event = get_event(fd_, kMulticastJoin);
    EXPECT_EQ(70u + flags, event.uid);
    EXPECT_EQ(membership_, event.id);
    EXPECT_EQ(0u, event.status);
    EXPECT_EQ(0xffffffu, event.param.ud.qp_num);
    EXPECT_EQ(kQkey, event.param.ud.qkey);
    EXPECT_EQ(0, memcmp(event.param.ud.ah_attr.grh.dgid, kGroupGid, 16));
    expect_own_gid(event.param.ud.ah_attr);
    ASSERT_EQ(0, leave(membership_));
    EXPECT_EQ(1u, reported_);
    EXPECT_EQ(ENOENT, leave(membership_));
  }
  EXPECT_EQ(2u, destroy_id(fd_, id));
}

TEST_F(UcmaDatagramTest, TheOlderCommandToJoin) {
  const uint32_t id = new_bound(1);
  rdma_ucm_join_ip_mcast body{};
  body.response = address_of(&membership_);
  body.uid = 71;
  body.id = id;
  const sockaddr_storage group = ip("239.1.2.3", 0);
  memcpy(&body.addr, &group, sizeof body.addr);
  ASSERT_EQ(0, command(fd_, kJoinIp, body));
  EXPECT_EQ(membership_, get_event(fd_, kMulticastJoin).id);
  EXPECT_EQ(1u, destroy_id(fd_, id));
}

TEST_F(UcmaDatagramTest, BadJoins) {
  const uint32_t id = new_bound(1);
  EXPECT_EQ(EINVAL, join(id, 71, 2));
  EXPECT_EQ(ENOSPC, join(id, 71, 0, 3));
  EXPECT_EQ(ENOENT, join(id + 1000, 71, 0));
  EXPECT_EQ(EINVAL, join(id, 0, 0));
  EXPECT_EQ(ENOENT, leave(1));
  EXPECT_EQ(EAGAIN, [&] {
    fcntl(fd_, F_SETFL, O_NONBLOCK);
    return try_event(fd_);
  }());
}

}  // namespace
}  // namespace uiw::vkernel::test
