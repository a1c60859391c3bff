// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UC queue pairs as a program sees them, which runs with UIWARP_FACE=roce.
#include <chrono>

#include "support.h"

namespace uiw::provider_test {
namespace {

class Uc : public Verbs {
 protected:
  static constexpr uint32_t kPart = 64;

  void SetUp() override {
    Verbs::SetUp();
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    mr_ = reg(memory_, sizeof memory_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_TRUE(cq_ && mr_);
    ASSERT_EQ(ibv_query_gid(context_, 1, 1, &gid_), 0);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    Verbs::TearDown();
  }
  ibv_qp* make_uc() {
    ibv_qp_init_attr init = qp_attr(cq_);
    init.qp_type = IBV_QPT_UC;
    ibv_qp* qp = ibv_create_qp(pd_, &init);
    EXPECT_NE(qp, nullptr);
    return qp;
  }
  ibv_qp* make_uc_ex(uint64_t ops) {
    const ibv_qp_init_attr common = qp_attr(cq_);
    ibv_qp_init_attr_ex init{};
    std::memcpy(&init, &common, sizeof common);
    init.qp_type = IBV_QPT_UC;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd_;
    init.send_ops_flags = ops;
    return ibv_create_qp_ex(context_, &init);
  }
  // The next state on its way to RTS.
  int advance(ibv_qp* qp, ibv_qp_state to, uint32_t peer = 0, int more = 0, int less = 0) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    attr.path_mtu = IBV_MTU_1024;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = gid_;
    attr.ah_attr.grh.sgid_index = 1;
    attr.dest_qp_num = peer;
    attr.rq_psn = attr.sq_psn = 0x1234;
    int mask = IBV_QP_STATE | more;
    if (to == IBV_QPS_INIT) mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (to == IBV_QPS_RTR) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (to == IBV_QPS_RTS) mask |= IBV_QP_SQ_PSN;
    return ibv_modify_qp(qp, &attr, mask & ~less);
  }
  void connect(ibv_qp* qp, uint32_t peer) {
    for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
      ASSERT_EQ(advance(qp, to, peer), 0) << to;
  }
  ibv_sge at(size_t offset) {
    return {reinterpret_cast<uintptr_t>(memory_) + offset, kPart, mr_->lkey};
  }
  ibv_wc next() {
    ibv_wc wc{};
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (ibv_poll_cq(cq_, 1, &wc) == 0 && std::chrono::steady_clock::now() < end) {
    }
    return wc;
  }

  alignas(8) char memory_[4 * kPart] = {};
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_gid gid_{};
};

TEST_F(Uc, AttributesAreNeededAndRefusedAsByAdapters) {
  ibv_qp* qp = make_uc();
  EXPECT_EQ(advance(qp, IBV_QPS_INIT, 0, 0, IBV_QP_ACCESS_FLAGS), EINVAL);
  EXPECT_EQ(advance(qp, IBV_QPS_RTR, qp->qp_num), EINVAL);
  ASSERT_EQ(advance(qp, IBV_QPS_INIT), 0);
  EXPECT_EQ(advance(qp, IBV_QPS_RTR, qp->qp_num, 0, IBV_QP_RQ_PSN), EINVAL);
  EXPECT_EQ(advance(qp, IBV_QPS_RTR, qp->qp_num, IBV_QP_MIN_RNR_TIMER), EINVAL);
  ASSERT_EQ(advance(qp, IBV_QPS_RTR, qp->qp_num), 0);
  EXPECT_EQ(advance(qp, IBV_QPS_RTS, 0, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT), EINVAL);
  EXPECT_EQ(advance(qp, IBV_QPS_RTS, 0, 0, IBV_QP_SQ_PSN), EINVAL);
  ASSERT_EQ(advance(qp, IBV_QPS_RTS), 0);
  ibv_qp_attr found{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp, &found, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(found.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(init.qp_type, IBV_QPT_UC);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Uc, HasTheOperationsThatNeedNoAnswer) {
  const uint64_t all = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                       IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                       IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  ibv_qp* qp = make_uc_ex(all);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  for (const uint64_t op : {IBV_QP_EX_WITH_RDMA_READ, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
                            IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_SEND_WITH_INV})
    EXPECT_NULL_ERRNO(make_uc_ex(all | op), EOPNOTSUPP);
  qp = make_uc();
  connect(qp, qp->qp_num);
  ibv_sge sge = at(0);
  ibv_send_wr wr{}, *bad;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// The first Send finds no receive, and then the two go on.
TEST_F(Uc, TwoOfOneProcess) {
  ibv_qp *one = make_uc(), *other = make_uc();
  connect(one, other->qp_num);
  connect(other, one->qp_num);
  std::memset(memory_, 'l', kPart);
  ASSERT_EQ(post_send(one, 1, at(0)), 0);
  ibv_wc wc = next();
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  // It has come when what came behind it has.
  ibv_sge sge = at(0);
  ibv_send_wr write{}, *bad;
  write.wr_id = 2;
  write.sg_list = &sge;
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = IBV_SEND_SIGNALED;
  write.wr.rdma = {.remote_addr = at(2 * kPart).addr, .rkey = mr_->rkey};
  ASSERT_EQ(ibv_post_send(one, &write, &bad), 0);
  EXPECT_EQ(next().wr_id, 2u);
  const auto* const end = reinterpret_cast<uint64_t*>(memory_ + 3 * kPart - sizeof(uint64_t));
  while (__atomic_load_n(end, __ATOMIC_ACQUIRE) == 0) ibv_poll_cq(cq_, 1, &wc);
  ASSERT_EQ(post_recv(other, 3, at(kPart)), 0);
  std::strcpy(memory_, "there");
  ASSERT_EQ(post_send(one, 4, at(0)), 0);
  uint64_t seen = 0;
  for (int i = 0; i < 2; ++i) {
    wc = next();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    seen += wc.wr_id;
  }
  EXPECT_EQ(seen, 7u);
  EXPECT_STREQ(memory_ + kPart, "there");
  // Nobody misses the other one.
  EXPECT_EQ(ibv_destroy_qp(other), 0);
  for (uint64_t id = 5; id < 100; ++id) {
    ASSERT_EQ(post_send(one, id, at(0)), 0);
    wc = next();
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(ibv_destroy_qp(one), 0);
}

}  // namespace
}  // namespace uiw::provider_test
