// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// UD queue pairs through the stock libibverbs: answering by the GRH, and ibv_wr_*(). With
// UIWARP_FACE=roce.
#include <arpa/inet.h>
#include <sched.h>

#include <string>

#include "support.h"

namespace uiw::provider_test {
namespace {

constexpr uint32_t kQkey = 0x11111111, kSize = 256, kGrh = sizeof(ibv_grh);

class UdVerbs : public Verbs {
 protected:
  void SetUp() override {
    Verbs::SetUp();
    if (!context_) return;
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    mr_ = reg(memory_, sizeof memory_, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_TRUE(cq_ && mr_);
    a_ = make_ud();
    b_ = make_ud();
  }
  void TearDown() override {
    for (ibv_qp* qp : {a_, b_})
      if (qp) EXPECT_EQ(ibv_destroy_qp(qp), 0);
    if (mr_) EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    if (cq_) EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    Verbs::TearDown();
  }
  ibv_qp_init_attr_ex ud_attr(uint64_t send_ops) {
    ibv_qp_init_attr_ex init{};
    const ibv_qp_init_attr common = qp_attr(cq_);
    std::memcpy(&init, &common, sizeof common);
    init.qp_type = IBV_QPT_UD;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd_;
    init.send_ops_flags = send_ops;
    return init;
  }
  ibv_qp* make_ud() {
    ibv_qp_init_attr_ex init = ud_attr(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
    ibv_qp* const qp = ibv_create_qp_ex(context_, &init);
    EXPECT_NE(qp, nullptr) << strerror(errno);
    if (!qp) return nullptr;
    ibv_qp_attr attr{};
    attr.port_num = 1;
    attr.qkey = kQkey;
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    return qp;
  }
  ibv_sge place(uint32_t which, uint32_t length) const {
    return {reinterpret_cast<uintptr_t>(memory_) + which * kSize, length, mr_->lkey};
  }
  ibv_wc wait() {
    ibv_wc wc{};
    while (ibv_poll_cq(cq_, 1, &wc) == 0) sched_yield();  // until ctest's limit
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    return wc;
  }
  // Of the two completions of a datagram the receive's.
  ibv_wc wait_for_both() {
    const ibv_wc first = wait(), second = wait();
    EXPECT_NE(first.opcode, second.opcode);
    return first.opcode == IBV_WC_RECV ? first : second;
  }
  std::string text_at(uint32_t which, const ibv_wc& wc) const {
    return {reinterpret_cast<const char*>(memory_) + which * kSize + kGrh, wc.byte_len - kGrh};
  }

  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp *a_ = nullptr, *b_ = nullptr;
  alignas(8) uint8_t memory_[4 * kSize] = {};
};

// By each GID of the device, whichever family and type it is.
TEST_F(UdVerbs, AnAnswerGoesWhereTheGrhSays) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  std::memcpy(memory_, "question", 8);
  std::memcpy(memory_ + kSize, "answer", 6);
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    SCOPED_TRACE(index);
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.sgid_index = static_cast<uint8_t>(index);
    attr.grh.traffic_class = 0x28;
    attr.grh.hop_limit = 17;
    ASSERT_EQ(ibv_query_gid(context_, 1, index, &attr.grh.dgid), 0);
    ibv_ah* ah = ibv_create_ah(pd_, &attr);
    ASSERT_NE(ah, nullptr);
    ASSERT_EQ(post_recv(b_, 1, place(2, kSize)), 0);
    ibv_sge from = place(0, 8);
    ibv_send_wr wr{}, *bad;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {ah, b_->qp_num, kQkey};
    ASSERT_EQ(ibv_post_send(a_, &wr, &bad), 0);
    ibv_wc wc = wait_for_both();
    EXPECT_EQ(text_at(2, wc), "question");
    EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);

    auto* const grh = reinterpret_cast<ibv_grh*>(memory_ + 2 * kSize);
    ibv_ah_attr answer{};
    ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, grh, &answer), 0) << strerror(errno);
    EXPECT_EQ(answer.grh.sgid_index, index) << "the type of the GID";
    EXPECT_EQ(std::memcmp(&answer.grh.dgid, &attr.grh.dgid, sizeof attr.grh.dgid), 0);
    EXPECT_EQ(answer.grh.traffic_class, 0x28);
    EXPECT_EQ(answer.grh.hop_limit, 17);
    ibv_ah* back = ibv_create_ah_from_wc(pd_, &wc, grh, 1);
    ASSERT_NE(back, nullptr) << strerror(errno);
    ASSERT_EQ(post_recv(a_, 2, place(3, kSize)), 0);
    from = place(1, 6);
    wr.wr.ud = {back, wc.src_qp, kQkey};
    ASSERT_EQ(ibv_post_send(b_, &wr, &bad), 0);
    wc = wait_for_both();
    EXPECT_EQ(wc.qp_num, a_->qp_num);
    EXPECT_EQ(wc.src_qp, b_->qp_num);
    EXPECT_EQ(text_at(3, wc), "answer");
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    EXPECT_EQ(ibv_destroy_ah(back), 0);
  }
}

// The address may come before the data or behind it.
TEST_F(UdVerbs, SettersOfABatchComeInAnyOrder) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &attr.grh.dgid), 0);
  ibv_ah* ah = ibv_create_ah(pd_, &attr);
  ASSERT_NE(ah, nullptr);
  ibv_qp_ex* const ex = ibv_qp_to_qp_ex(a_);
  ASSERT_NE(ex, nullptr);
  for (uint32_t i : {0u, 1u}) ASSERT_EQ(post_recv(b_, i, place(2 + i, kSize)), 0);
  std::memcpy(memory_, "sge", 3);
  ibv_wr_start(ex);
  ex->wr_flags = 0;
  ibv_wr_send(ex);
  ibv_wr_set_ud_addr(ex, ah, b_->qp_num, kQkey);
  ibv_wr_set_sge(ex, mr_->lkey, reinterpret_cast<uintptr_t>(memory_), 3);
  ibv_wr_send_imm(ex, htonl(77));
  char text[] = "inline";
  ibv_wr_set_inline_data(ex, text, 6);
  std::memset(text, 0, sizeof text);
  ibv_wr_set_ud_addr(ex, ah, b_->qp_num, kQkey);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  ibv_wc wc = wait();
  EXPECT_EQ(text_at(2, wc), "sge");
  EXPECT_FALSE(wc.wc_flags & IBV_WC_WITH_IMM);
  wc = wait();
  EXPECT_EQ(text_at(3, wc), "inline");
  EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
  EXPECT_EQ(wc.imm_data, htonl(77));
  // None at all.
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_set_sge(ex, mr_->lkey, reinterpret_cast<uintptr_t>(memory_), 3);
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
  ibv_wr_start(ex);
  ibv_wr_rdma_write(ex, 1, 2);
  ibv_wr_set_ud_addr(ex, ah, b_->qp_num, kQkey);
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(UdVerbs, OtherOperationsAreNotTheirs) {
  ibv_qp_init_attr_ex init = ud_attr(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE);
  EXPECT_NULL_ERRNO(ibv_create_qp_ex(context_, &init), EOPNOTSUPP);
}

TEST_F(UdVerbs, GroupsReachAllWhoAreAttached) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  EXPECT_GT(device.max_mcast_grp, 0);
  EXPECT_GT(device.max_mcast_qp_attach, 0);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.sgid_index = 1;
  attr.grh.hop_limit = 1;
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:239.77.1.2", attr.grh.dgid.raw), 1);
  const ibv_gid gid = attr.grh.dgid;
  ibv_ah* ah = ibv_create_ah(pd_, &attr);
  ASSERT_NE(ah, nullptr);
  ASSERT_EQ(ibv_attach_mcast(b_, &gid, 0), 0) << strerror(errno);
  EXPECT_EQ(ibv_attach_mcast(b_, &gid, 0), 0) << "twice is once";
  EXPECT_EQ(ibv_destroy_qp(b_), EBUSY);
  ASSERT_EQ(post_recv(b_, 1, place(2, kSize)), 0);
  std::memcpy(memory_, "to all", 6);
  ibv_sge from = place(0, 6);
  ibv_send_wr wr{}, *bad;
  wr.sg_list = &from;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {ah, 0xffffff, kQkey};
  ASSERT_EQ(ibv_post_send(a_, &wr, &bad), 0);
  const ibv_wc wc = wait();
  EXPECT_EQ(wc.src_qp, a_->qp_num);
  EXPECT_EQ(text_at(2, wc), "to all");
  EXPECT_EQ(ibv_detach_mcast(b_, &gid, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(b_, &gid, 0), EINVAL);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

}  // namespace
}  // namespace uiw::provider_test
