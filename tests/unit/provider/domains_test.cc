// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Parent domains, thread domains, and memory that is paged on demand, through the stock calls.
#include <cstdlib>

#include "connected.h"

namespace uiw::provider_test {
namespace {

class Domains : public Verbs {
 protected:
  ibv_pd* make_parent(ibv_td* td = nullptr) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd_;
    attr.td = td;
    return ibv_alloc_parent_domain(context_, &attr);
  }
};

TEST_F(Domains, AParentDomainServesWhereAProtectionDomainDoes) {
  ibv_td_init_attr nothing{};
  ibv_td* td = ibv_alloc_td(context_, &nothing);
  ASSERT_NE(td, nullptr);
  EXPECT_EQ(td->context, context_);
  ibv_pd* parent = make_parent(td);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->context, context_);
  EXPECT_EQ(parent->handle, pd_->handle);
  errno = 0;
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(errno, EBUSY);
  errno = 0;
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  EXPECT_EQ(errno, EBUSY);

  char buffer[64];
  ibv_mr* mr = ibv_reg_mr(parent, buffer, sizeof buffer, int{IBV_ACCESS_LOCAL_WRITE});
  ibv_mw* mw = ibv_alloc_mw(parent, IBV_MW_TYPE_2);
  ibv_srq_init_attr srq_init{nullptr, {8, 2, 0}};
  ibv_srq* srq = ibv_create_srq(parent, &srq_init);
  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 4;
  cq_init.wc_flags = IBV_WC_STANDARD_FLAGS;
  cq_init.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  cq_init.parent_domain = parent;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &cq_init);
  ASSERT_TRUE(mr && mw && srq && cq);
  EXPECT_EQ(mr->pd, parent);
  EXPECT_EQ(mw->pd, parent);
  EXPECT_EQ(srq->pd, parent);
  ibv_qp_init_attr init = qp_attr(ibv_cq_ex_to_cq(cq), srq);
  ibv_qp* qp = ibv_create_qp(parent, &init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->pd, parent);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);  // the completion queue
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

// They are for memory that is shared with a device.
TEST_F(Domains, AllocatorsAreNotCalled) {
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd_;
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  attr.alloc = [](ibv_pd*, void*, size_t, size_t, uint64_t) -> void* { std::abort(); };
  attr.free = [](ibv_pd*, void*, void*, uint64_t) { std::abort(); };
  ibv_pd* parent = ibv_alloc_parent_domain(context_, &attr);
  ASSERT_NE(parent, nullptr);
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ibv_qp_init_attr init = qp_attr(cq);
  ibv_qp* qp = ibv_create_qp(parent, &init);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

TEST_F(Domains, WrongArgumentsAreRefused) {
  testing::internal::CaptureStderr();
  ibv_parent_domain_init_attr attr{};
  EXPECT_NULL_ERRNO(ibv_alloc_parent_domain(context_, &attr), EINVAL);
  attr.pd = pd_;
  attr.comp_mask = 4;
  EXPECT_NULL_ERRNO(ibv_alloc_parent_domain(context_, &attr), EOPNOTSUPP);
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  EXPECT_NULL_ERRNO(ibv_alloc_parent_domain(context_, &attr), EINVAL);
  ibv_td_init_attr td{1};
  EXPECT_NULL_ERRNO(ibv_alloc_td(context_, &td), EOPNOTSUPP);
  // Said once in a process: there is no object yet.
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* words : {"ibv_alloc_parent_domain: pd is null\n", "needs both alloc and free\n",
                            "comp_mask 0x4 has bits", "ibv_alloc_td: comp_mask is 0x1, "})
    EXPECT_NE(said.find(words), said.npos) << said;
  ibv_cq_init_attr_ex cq{};
  cq.cqe = 4;
  cq.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  EXPECT_NULL_ERRNO(ibv_create_cq_ex(context_, &cq), EINVAL);
  cq.parent_domain = pd_;  // it is none
  EXPECT_NULL_ERRNO(ibv_create_cq_ex(context_, &cq), EINVAL);
}

TEST_F(Domains, MemoryOnDemandIsAdvised) {
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &device), 0);
  EXPECT_EQ(device.odp_caps.general_caps, uint64_t{IBV_ODP_SUPPORT});
  char buffer[64];
  ibv_mr* mr = reg(buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  ASSERT_NE(mr, nullptr);
  ibv_sge range{reinterpret_cast<uintptr_t>(buffer), sizeof buffer, mr->lkey};
  for (auto advice : {IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                      IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT})
    EXPECT_EQ(ibv_advise_mr(pd_, advice, IBV_ADVISE_MR_FLAG_FLUSH, &range, 1), 0);
  range.length += 1;
  errno = 0;
  EXPECT_EQ(ibv_advise_mr(pd_, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &range, 1), EFAULT);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// A queue pair of the one, memory of the other, both ways.
TEST_F(Connected, MemoryOfAProtectionDomainIsThatOfItsParentDomains) {
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd_;
  ibv_pd* parent = ibv_alloc_parent_domain(context_, &attr);
  ASSERT_NE(parent, nullptr);
  uint8_t from[100], to[100] = {};
  std::memset(from, 7, sizeof from);
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
  ibv_mr* ours = ibv_reg_mr(pd_, from, sizeof from, access);
  ibv_mr* theirs = ibv_reg_mr(parent, to, sizeof to, access);
  ASSERT_TRUE(ours && theirs);
  const Ends ends = connector_->connect([&](rdma_cm_id* id, bool passive) {
    ibv_qp_init_attr init = init_attr(passive);
    EXPECT_EQ(rdma_create_qp(id, passive ? pd_ : parent, &init), 0);
  });
  ASSERT_TRUE(ends.a && ends.b);
  const ibv_sge receive{reinterpret_cast<uintptr_t>(to), sizeof to, theirs->lkey};
  EXPECT_EQ(post_recv(ends.b->qp, 1, receive), 0);
  EXPECT_EQ(post_send(ends.a->qp, 2, {reinterpret_cast<uintptr_t>(from), sizeof from, ours->lkey}),
            0);
  EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(wait_for(peer_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(from, to, sizeof to), 0);
  connector_->disconnect(ends);
  EXPECT_EQ(ibv_dereg_mr(theirs), 0);
  EXPECT_EQ(ibv_dereg_mr(ours), 0);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

}  // namespace
}  // namespace uiw::provider_test
