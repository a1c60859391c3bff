// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What librdmacm is told, by InfiniBand's rules, and what it does with it.
#include <endian.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include "device/device.h"
#include "device/gid_table.h"
#include "support/refusals.h"
#include "unit/vkernel/ucma_rig.h"

namespace uiw::vkernel::test {
namespace {

constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr uint32_t kEveryRight =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint8_t kLoopbackGid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
// Of the kernel's rdma_cm_event_type.
constexpr uint32_t kConnectRequest = 4, kConnectResponse = 5, kRejected = 8, kEstablished = 9,
                   kDisconnected = 10, kTimewaitExit = 15;

class UcmaInfinibandTest : public UcmaTest {
 protected:
  UcmaInfinibandTest() : UcmaTest(device::CmRules::kInfiniband) {}

  void SetUp() override {
    UcmaTest::SetUp();
    fd_ = open_channel();
  }
  int ask(uint32_t id, uint32_t state) {
    attr_ = {};
    return command(fd_, kInitQpAttr, rdma_ucm_init_qp_attr{address_of(&attr_), id, state});
  }
  int mask() const { return static_cast<int>(attr_.qp_attr_mask); }
  int set_option(uint32_t id, uint32_t level, uint32_t name, const void* value, size_t size) {
    return command(
        fd_, kSetOption,
        rdma_ucm_set_option{address_of(value), id, level, name, static_cast<uint32_t>(size)});
  }
  int connect(uint32_t id, const rdma_ucm_conn_param& wanted) {
    rdma_ucm_connect body{};
    body.conn_param = wanted;
    body.id = id;
    return command(fd_, kConnect, body);
  }
  int accept(uint32_t id, const rdma_ucm_conn_param& wanted) {
    rdma_ucm_accept body{};
    body.uid = 300;
    body.conn_param = wanted;
    body.id = id;
    return command(fd_, kAccept, body);
  }
  // As rdma_establish(), and librdmacm with CONNECT_RESPONSE.
  int establish(uint32_t id) {
    rdma_ucm_accept body{};
    body.id = id;
    return command(fd_, kAccept, body);
  }
  rdma_ucm_event_resp make_request() {
    make_listener(fd_, 100);
    active_ = make_resolved(fd_, 200);
    rdma_ucm_conn_param wanted = param(1);
    wanted.responder_resources = 3;
    wanted.initiator_depth = 5;
    wanted.retry_count = 6;
    EXPECT_EQ(0, connect(active_, wanted));
    const rdma_ucm_event_resp request = get_event(fd_, kConnectRequest);
    passive_ = request.id;
    return request;
  }
  void accept_request() {
    rdma_ucm_conn_param wanted = param(2);
    wanted.responder_resources = 5;
    wanted.initiator_depth = 3;
    ASSERT_EQ(0, accept(passive_, wanted));
    EXPECT_EQ(200u, get_event(fd_, kConnectResponse).uid);
  }

  int fd_ = -1;
  uint32_t active_ = 0, passive_ = 0;
  ib_uverbs_qp_attr attr_{};
};

TEST_F(UcmaInfinibandTest, WholeConnection) {
  const rdma_ucm_event_resp request = make_request();
  EXPECT_EQ(1u, request.param.conn.qp_num);
  EXPECT_EQ(1, request.param.conn.flow_control);
  EXPECT_EQ(7, request.param.conn.retry_count);
  EXPECT_EQ(7, request.param.conn.rnr_retry_count);
  for (uint32_t id : {active_, passive_}) {
    const uint8_t shortest = 1;
    ASSERT_EQ(0, set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &shortest, 1));
  }
  accept_request();
  ASSERT_EQ(0, establish(active_));
  EXPECT_EQ(300u, get_event(fd_, kEstablished).uid);
  for (uint32_t id : {active_, passive_})
    ASSERT_EQ(0, command(fd_, kDisconnect, rdma_ucm_disconnect{id}));
  std::map<uint64_t, std::vector<uint32_t>> told;
  for (int i = 0; i < 4; ++i) {
    rdma_ucm_event_resp event{};
    ASSERT_EQ(0, command(fd_, kGetEvent, rdma_ucm_get_event{address_of(&event)}));
    told[event.uid].push_back(event.event);
  }
  const std::vector<uint32_t> both{kDisconnected, kTimewaitExit};
  EXPECT_EQ(both, told[200]);
  EXPECT_EQ(both, told[300]);
}

TEST_F(UcmaInfinibandTest, AttributesBeforeThereIsAConnection) {
  listen_address_ = cm::test::ip("127.0.0.1", 7);
  const uint32_t unbound = create_id(fd_, 1), id = make_resolved(fd_, 2);
  EXPECT_EQ(EINVAL, ask(unbound, IBV_QPS_INIT));
  ASSERT_EQ(0, ask(id, IBV_QPS_INIT));
  EXPECT_EQ(kInitMask, mask());
  EXPECT_EQ(static_cast<uint32_t>(IBV_QPS_INIT), attr_.qp_state);
  EXPECT_EQ(1, attr_.port_num);
  EXPECT_EQ(0, attr_.pkey_index);
  EXPECT_EQ(0u, attr_.qp_access_flags);
  for (uint32_t state : {uint32_t{IBV_QPS_RTR}, uint32_t{IBV_QPS_RTS}, uint32_t{IBV_QPS_SQD}, 77u})
    EXPECT_EQ(EINVAL, ask(id, state));
}

TEST_F(UcmaInfinibandTest, AttributesOfThePassiveEnd) {
  make_request();
  // It has no answer yet.
  uiw::test::expect_refused(EINVAL, {"rdma_accept", "not with this id now"},
                            [&] { return ask(active_, IBV_QPS_RTR); });
  ASSERT_EQ(0, ask(passive_, IBV_QPS_INIT));
  EXPECT_EQ(kInitMask, mask());
  EXPECT_EQ(kEveryRight, attr_.qp_access_flags);
  ASSERT_EQ(0, ask(passive_, IBV_QPS_RTR));
  EXPECT_EQ(kRtrMask, mask());
  EXPECT_EQ(5, attr_.max_dest_rd_atomic);
  ASSERT_EQ(0, ask(passive_, IBV_QPS_RTS));
  EXPECT_EQ(kRtsMask, mask());
  EXPECT_EQ(3, attr_.max_rd_atomic);
  EXPECT_EQ(7, attr_.retry_cnt);
  EXPECT_EQ(7, attr_.rnr_retry);
}

TEST_F(UcmaInfinibandTest, AttributesOfTheActiveEnd) {
  make_request();
  const uint8_t timeout = 9;
  ASSERT_EQ(0, set_option(active_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
  accept_request();
  ASSERT_EQ(0, ask(active_, IBV_QPS_RTR));
  EXPECT_EQ(kRtrMask, mask());
  EXPECT_EQ(static_cast<uint32_t>(IBV_QPS_RTR), attr_.qp_state);
  EXPECT_EQ(1, attr_.ah_attr.is_global);
  EXPECT_EQ(1, attr_.ah_attr.port_num);
  EXPECT_EQ(0, memcmp(attr_.ah_attr.grh.dgid, kLoopbackGid, 16));
  const device::Device* device = device::find_by_address(listen_address_);
  const auto own =
      device::gid_at(device::state_of(*device), device::face(), attr_.ah_attr.grh.sgid_index);
  ASSERT_TRUE(own);
  EXPECT_EQ(0, memcmp(&own->address, kLoopbackGid, 16));
  EXPECT_EQ(static_cast<uint32_t>(IBV_MTU_4096), attr_.path_mtu);
  EXPECT_EQ(1u, attr_.dest_qp_num);
  EXPECT_EQ(3, attr_.max_dest_rd_atomic);
  ASSERT_EQ(0, ask(active_, IBV_QPS_RTS));
  EXPECT_EQ(kRtsMask, mask());
  EXPECT_EQ(5, attr_.max_rd_atomic);
  EXPECT_EQ(6, attr_.retry_cnt);
  EXPECT_EQ(9, attr_.timeout);
  ASSERT_EQ(0, establish(active_));
  get_event(fd_, kEstablished);
  ASSERT_EQ(0, ask(active_, IBV_QPS_RTS));
}

TEST_F(UcmaInfinibandTest, AttributesOfAnEndThatReadsNothing) {
  make_listener(fd_, 100);
  active_ = make_resolved(fd_, 200);
  rdma_ucm_conn_param wanted = param(1);
  wanted.responder_resources = 0;
  ASSERT_EQ(0, connect(active_, wanted));
  ASSERT_EQ(0, ask(active_, IBV_QPS_INIT));
  EXPECT_EQ(static_cast<uint32_t>(IBV_ACCESS_REMOTE_WRITE), attr_.qp_access_flags);
}

TEST_F(UcmaInfinibandTest, NoAttributesOfWhatIsOver) {
  make_request();
  rdma_ucm_reject reject{};
  reject.id = passive_;
  ASSERT_EQ(0, command(fd_, kReject, reject));
  EXPECT_EQ(28u, get_event(fd_, kRejected).status);
  for (uint32_t state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
    EXPECT_EQ(EINVAL, ask(active_, state));
}

TEST_F(UcmaInfinibandTest, ThePathIsKnownFromTheRouteOn) {
  listen_address_ = cm::test::ip("127.0.0.1", 7);
  const uint32_t bound = create_id(fd_, 1);
  ASSERT_EQ(0, bind_ip(fd_, bound, cm::test::ip("127.0.0.1", 0)));
  struct {
    uint32_t num_paths = 9, reserved = 0;
    ib_path_rec_data path{};
  } answer;
  auto query_path = [&](uint32_t id, uint16_t room) {
    return command(fd_, kQuery, rdma_ucm_query{address_of(&answer), id, RDMA_USER_CM_QUERY_PATH},
                   room);
  };
  ASSERT_EQ(0, query_path(bound, sizeof answer));
  EXPECT_EQ(0u, answer.num_paths);
  EXPECT_EQ(0u, query_route(fd_, bound).num_paths);

  const uint32_t id = make_resolved(fd_, 2);
  ASSERT_EQ(0, query_path(id, sizeof answer));
  EXPECT_EQ(1u, answer.num_paths);
  EXPECT_EQ(static_cast<uint32_t>(IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
                                  IBV_PATH_FLAG_BIDIRECTIONAL),
            answer.path.flags);
  ibv_path_record record;
  memcpy(&record, answer.path.path_rec, sizeof record);
  EXPECT_EQ(0, memcmp(&record.dgid, kLoopbackGid, 16));
  EXPECT_EQ(0, memcmp(&record.sgid, kLoopbackGid, 16));
  EXPECT_EQ(htobe16(0xffff), record.pkey);
  EXPECT_EQ(IBV_MTU_4096, record.mtu & 0x3f);
  EXPECT_EQ(1 << 7 | 1, record.reversible_numpath);
  ASSERT_EQ(0, query_path(id, 8));  // no room for one
  EXPECT_EQ(0u, answer.num_paths);

  const rdma_ucm_query_route_resp route = query_route(fd_, id);
  EXPECT_EQ(1u, route.num_paths);
  EXPECT_EQ(0, memcmp(route.ib_route[0].dgid, kLoopbackGid, 16));
  EXPECT_EQ(0, memcmp(route.ib_route[0].sgid, kLoopbackGid, 16));
  EXPECT_EQ(static_cast<uint32_t>(IBV_MTU_4096), route.ib_route[0].mtu);
  EXPECT_EQ(htobe16(0xffff), route.ib_route[0].pkey);
}

TEST_F(UcmaInfinibandTest, ARequestHasAPath) {
  make_request();
  EXPECT_EQ(1u, query_route(fd_, passive_).num_paths);
}

TEST_F(UcmaInfinibandTest, AProgramMayBringThePath) {
  const uint32_t id = create_id(fd_, 7);
  resolve_ip(fd_, id, cm::test::ip("127.0.0.1", 7));
  get_event(fd_, 0);
  ib_path_rec_data paths[2]{};
  auto set = [&](size_t size) {
    return set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths, size);
  };
  EXPECT_EQ(EINVAL, set(sizeof paths));  // none is usable
  paths[1].flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  EXPECT_EQ(EINVAL, set(0));
  EXPECT_EQ(EINVAL, set(sizeof paths - 1));
  EXPECT_EQ(EFAULT,
            set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, user_pointer(16), sizeof paths));
  ASSERT_EQ(0, set(sizeof paths));
  EXPECT_EQ(7u, get_event(fd_, 2).uid);
  EXPECT_EQ(EINVAL, set(sizeof paths));  // it has one
}

TEST_F(UcmaInfinibandTest, ConnectedIdsOfThePortSpaceOfInfiniband) {
  const uint32_t listener = create_id(fd_, 100, RDMA_PS_IB);
  ASSERT_EQ(0, bind_ip(fd_, listener, cm::test::ip("127.0.0.1", 0)));
  ASSERT_EQ(0, listen(fd_, listener));
  const rdma_ucm_query_route_resp route = query_route(fd_, listener);
  memcpy(&listen_address_, &route.src_addr, sizeof route.src_addr);
  ASSERT_EQ(0, connect(make_resolved(fd_, 200), param(1)));
  EXPECT_EQ(100u, get_event(fd_, kConnectRequest).uid);
}

TEST_F(UcmaInfinibandTest, ReadyOnlyAfterAnAnswer) {
  make_request();
  EXPECT_EQ(EINVAL, establish(active_));
  EXPECT_EQ(EINVAL, establish(passive_));
  EXPECT_EQ(ENOENT, establish(active_ + 1000));
}

}  // namespace
}  // namespace uiw::vkernel::test
