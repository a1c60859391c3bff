// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Wrong arguments and what this device does not have: the manual's errno, nothing half done.
#include <sys/mman.h>
#include <unistd.h>

#include "support.h"

namespace uiw::provider_test {
namespace {

using Refusals = Verbs;

TEST_F(Refusals, MemoryRegion) {
  char buffer[64];
  EXPECT_NULL_ERRNO(reg(nullptr, 64, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  EXPECT_NULL_ERRNO(reg(buffer, sizeof buffer, IBV_ACCESS_REMOTE_WRITE), EINVAL);
  EXPECT_NULL_ERRNO(reg(buffer, sizeof buffer, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
  EXPECT_NULL_ERRNO(reg(buffer, sizeof buffer, 1 << 8), EOPNOTSUPP);  // IBV_ACCESS_FLUSH_GLOBAL
  EXPECT_NULL_ERRNO(reg(nullptr, SIZE_MAX, IBV_ACCESS_ON_DEMAND), EINVAL);
  EXPECT_NULL_ERRNO(reg(buffer, sizeof buffer, 1 << 15), EINVAL);
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NULL_ERRNO(reg(page, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  munmap(page, 4096);
}

TEST_F(Refusals, CompletionQueue) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  EXPECT_NULL_ERRNO(ibv_create_cq(context_, 0, nullptr, nullptr, 0), EINVAL);
  EXPECT_NULL_ERRNO(ibv_create_cq(context_, device.max_cqe + 1, nullptr, nullptr, 0), EINVAL);
  EXPECT_NULL_ERRNO(ibv_create_cq(context_, 1, nullptr, nullptr, context_->num_comp_vectors),
                    EINVAL);
  EXPECT_NULL_ERRNO(ibv_create_cq(context_, 1, nullptr, nullptr, -1), EINVAL);
}

TEST_F(Refusals, SharedReceiveQueue) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  ibv_srq_init_attr init{nullptr, {static_cast<uint32_t>(device.max_srq_wr) + 1, 1, 0}};
  EXPECT_NULL_ERRNO(ibv_create_srq(pd_, &init), EINVAL);
  init.attr = {1, static_cast<uint32_t>(device.max_srq_sge) + 1, 0};
  EXPECT_NULL_ERRNO(ibv_create_srq(pd_, &init), EINVAL);
}

TEST_F(Refusals, QueuePair) {
  ibv_cq* cq = ibv_create_cq(context_, 10, nullptr, nullptr, 0);
  ibv_qp_init_attr attr = qp_attr(cq);
  attr.qp_type = IBV_QPT_UD;
  EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &attr), EOPNOTSUPP);
  attr = qp_attr(cq);
  attr.send_cq = nullptr;
  EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &attr), EINVAL);
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  attr = qp_attr(cq);
  attr.cap.max_send_wr = static_cast<uint32_t>(device.max_qp_wr) + 1;
  EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &attr), EINVAL);
  attr = qp_attr(cq);
  attr.cap.max_send_sge = static_cast<uint32_t>(device.max_sge) + 1;
  EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &attr), EINVAL);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Refusals, PeersThatCannotBeNamed) {
  ibv_cq* cq = ibv_create_cq(context_, 10, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(cq);
  ibv_qp_attr good{};
  good.qp_state = IBV_QPS_RTR;
  good.ah_attr.is_global = 1;
  good.ah_attr.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &good.ah_attr.grh.dgid), 0);
  good.dest_qp_num = 0x123456;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  ibv_qp_attr attr = good;
  attr.ah_attr.is_global = 0;  // a LID alone
  EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), EINVAL);
  attr = good;
  attr.ah_attr.grh.sgid_index = 99;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), EINVAL);
  attr = good;
  attr.ah_attr.grh.dgid = {};
  EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), EINVAL);
  attr = good;
  attr.ah_attr.grh.dgid.raw[0] = 0xff;  // multicast
  EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), EINVAL);
  attr = good;
  attr.dest_qp_num = 1u << 24;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), EINVAL);
  EXPECT_EQ(ibv_modify_qp(qp, &good, mask & ~IBV_QP_DEST_QPN), EINVAL);
  EXPECT_EQ(ibv_modify_qp(qp, &good, mask & ~IBV_QP_AV), EINVAL);
  EXPECT_EQ(ibv_modify_qp(qp, &good, IBV_QP_AV | IBV_QP_DEST_QPN), EINVAL);
  attr = good;
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  ibv_send_wr wr{}, *bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Refusals, WhatTheDeviceDoesNotHave) {
  ibv_ah_attr ah{};
  EXPECT_NULL_ERRNO(ibv_create_ah(pd_, &ah), EOPNOTSUPP);
  ibv_xrcd_init_attr xrcd{};
  EXPECT_NULL_ERRNO(ibv_open_xrcd(context_, &xrcd), EOPNOTSUPP);
  ibv_alloc_dm_attr dm{};
  EXPECT_NULL_ERRNO(ibv_alloc_dm(context_, &dm), EOPNOTSUPP);
  EXPECT_NULL_ERRNO(ibv_alloc_null_mr(pd_), EOPNOTSUPP);
  EXPECT_NULL_ERRNO(ibv_reg_dmabuf_mr(pd_, 0, 4096, 0, -1, 0), EOPNOTSUPP);
  ibv_wq_init_attr wq{};
  EXPECT_NULL_ERRNO(ibv_create_wq(context_, &wq), EOPNOTSUPP);
  ibv_rwq_ind_table_init_attr table{};
  EXPECT_NULL_ERRNO(ibv_create_rwq_ind_table(context_, &table), EOPNOTSUPP);
  ibv_counters_init_attr counters{};
  EXPECT_NULL_ERRNO(ibv_create_counters(context_, &counters), EOPNOTSUPP);
  ibv_qp_open_attr open{};
  EXPECT_NULL_ERRNO(ibv_open_qp(context_, &open), EOPNOTSUPP);
  EXPECT_NULL_ERRNO(ibv_import_dm(context_, 0), EOPNOTSUPP);
  ibv_values_ex values{IBV_VALUES_MASK_RAW_CLOCK, {}};
  EXPECT_EQ(ibv_query_rt_values_ex(context_, &values), EOPNOTSUPP);

  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ibv_srq_init_attr srq_init{nullptr, {4, 1, 0}};
  ibv_srq* srq = ibv_create_srq(pd_, &srq_init);
  ibv_qp* qp = make_qp(cq);
  ASSERT_TRUE(cq && srq && qp);
  ibv_modify_cq_attr moderation{IBV_CQ_ATTR_MODERATE, {1, 1}};
  EXPECT_EQ(ibv_modify_cq(cq, &moderation), EOPNOTSUPP);
  uint32_t number;
  EXPECT_EQ(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
  union ibv_gid gid {};
  EXPECT_EQ(ibv_attach_mcast(qp, &gid, 0), EOPNOTSUPP);
  ibv_flow_attr flow{};
  EXPECT_NULL_ERRNO(ibv_create_flow(qp, &flow), EOPNOTSUPP);
  ibv_qp_rate_limit_attr rate{};
  EXPECT_EQ(ibv_modify_qp_rate_limit(qp, &rate), EOPNOTSUPP);
  ibv_ece ece{};
  EXPECT_EQ(ibv_query_ece(qp, &ece), EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

}  // namespace
}  // namespace uiw::provider_test
