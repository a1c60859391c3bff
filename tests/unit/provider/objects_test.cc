// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Every object is created with its public fields set, says EBUSY while used, and goes.
#include "support.h"

namespace uiw::provider_test {
namespace {

using Objects = Verbs;

TEST_F(Objects, MemoryRegion) {
  char buffer[4096];
  ibv_mr* mr = reg(buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->context, context_);
  EXPECT_EQ(mr->pd, pd_);
  EXPECT_EQ(mr->addr, buffer);
  EXPECT_EQ(mr->length, sizeof buffer);
  EXPECT_NE(mr->lkey, 0u);
  EXPECT_EQ(mr->lkey, mr->rkey);
  errno = 0;
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(errno, EBUSY);  // what programs print
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  mr = ibv_reg_mr_iova(pd_, buffer, sizeof buffer, 0x1000, int{IBV_ACCESS_REMOTE_READ});
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  mr = reg(buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// ibv_rereg_mr(3): pd is the new one with IBV_REREG_MR_CHANGE_PD, and is not looked at without it.
TEST_F(Objects, ReregistrationLooksAtNoDomainThatItIsNotToChange) {
  char buffer[4096];
  ibv_mr* const mr = reg(buffer, sizeof buffer, 0);
  ASSERT_NE(mr, nullptr);
  auto* const no_domain = reinterpret_cast<ibv_pd*>(uintptr_t{3});
  EXPECT_EQ(
      ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, no_domain, nullptr, 0, IBV_ACCESS_LOCAL_WRITE),
      0);
  EXPECT_EQ(mr->pd, pd_);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(Objects, CompletionQueue) {
  int mine = 0;
  ibv_cq* cq = ibv_create_cq(context_, 10, &mine, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(cq->context, context_);
  EXPECT_EQ(cq->cq_context, &mine);
  EXPECT_GE(cq->cqe, 10);
  EXPECT_EQ(ibv_resize_cq(cq, 100), 0);
  EXPECT_GE(cq->cqe, 100);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
  ibv_qp* qp = make_qp(cq);
  errno = 0;
  EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Objects, ResizingKeepsCompletions) {
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(cq);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post_recv(qp, i), 0);
  to_error(qp);
  EXPECT_EQ(ibv_resize_cq(cq, 0), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq, 3), 0);  // rounded up, which --check does not tell
  EXPECT_GE(cq->cqe, 3);
  EXPECT_EQ(ibv_resize_cq(cq, 2), EINVAL);  // four are waiting
  EXPECT_EQ(ibv_resize_cq(cq, 1000), 0);
  EXPECT_GE(cq->cqe, 1000);
  ibv_wc wc[8];
  ASSERT_EQ(ibv_poll_cq(cq, 8, wc), 4);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(wc[i].wr_id, i);
  EXPECT_EQ(ibv_resize_cq(cq, 1), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Objects, SharedReceiveQueue) {
  int mine = 0;
  ibv_srq_init_attr init{&mine, {8, 2, 0}};
  ibv_srq* srq = ibv_create_srq(pd_, &init);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(srq->context, context_);
  EXPECT_EQ(srq->srq_context, &mine);
  EXPECT_EQ(srq->pd, pd_);
  EXPECT_EQ(init.attr.max_wr, 8u);
  ibv_srq_attr attr{0, 0, 3};
  EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(ibv_query_srq(srq, &attr), 0);
  EXPECT_EQ(attr.max_wr, 8u);
  EXPECT_EQ(attr.max_sge, 2u);
  EXPECT_EQ(attr.srq_limit, 3u);
  ibv_recv_wr wr{}, *bad;
  EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  ibv_cq* cq = ibv_create_cq(context_, 10, nullptr, nullptr, 0);
  ibv_qp* qp = make_qp(cq, srq);
  EXPECT_EQ(qp->srq, srq);
  EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

TEST_F(Objects, ExtendedCallsWithNothingExtended) {
  ibv_srq_init_attr_ex srq_init{};
  srq_init.attr.max_wr = 8;
  srq_init.attr.max_sge = 1;
  srq_init.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  srq_init.srq_type = IBV_SRQT_BASIC;
  srq_init.pd = pd_;
  ibv_srq* srq = ibv_create_srq_ex(context_, &srq_init);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);

  ibv_cq* cq = ibv_create_cq(context_, 10, nullptr, nullptr, 0);
  const ibv_qp_init_attr plain = qp_attr(cq);
  ibv_qp_init_attr_ex init{};
  std::memcpy(&init, &plain, sizeof plain);
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = pd_;
  ibv_qp* qp = ibv_create_qp_ex(context_, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Objects, QueuePair) {
  ibv_cq* send_cq = ibv_create_cq(context_, 10, nullptr, nullptr, 0);
  ibv_cq* recv_cq = ibv_create_cq(context_, 10, nullptr, nullptr, 0);
  int mine = 0;
  ibv_qp_init_attr attr = qp_attr(send_cq);
  attr.recv_cq = recv_cq;
  attr.qp_context = &mine;
  attr.sq_sig_all = 1;
  ibv_qp* qp = ibv_create_qp(pd_, &attr);
  ASSERT_NE(qp, nullptr);
  EXPECT_GE(attr.cap.max_inline_data, 64u);  // rsockets need four octets
  EXPECT_EQ(qp->context, context_);
  EXPECT_EQ(qp->qp_context, &mine);
  EXPECT_EQ(qp->pd, pd_);
  EXPECT_EQ(qp->send_cq, send_cq);
  EXPECT_EQ(qp->recv_cq, recv_cq);
  EXPECT_EQ(qp->qp_type, IBV_QPT_RC);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_GT(qp->qp_num, 1u);
  EXPECT_EQ(ibv_qp_to_qp_ex(qp), nullptr);

  ibv_qp_attr got;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &got, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
  EXPECT_EQ(got.qp_state, IBV_QPS_INIT);
  EXPECT_EQ(init.qp_context, &mine);
  EXPECT_EQ(init.send_cq, send_cq);
  EXPECT_EQ(init.recv_cq, recv_cq);
  EXPECT_EQ(init.srq, nullptr);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  EXPECT_EQ(init.sq_sig_all, 1);
  EXPECT_EQ(init.cap.max_send_wr, attr.cap.max_send_wr);

  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  to_error(qp);
  EXPECT_EQ(qp->state, IBV_QPS_ERR);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(send_cq), 0);
  EXPECT_EQ(ibv_destroy_cq(recv_cq), 0);
}

}  // namespace
}  // namespace uiw::provider_test
