// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Parent domains and thread domains: what they are made of, and who holds them.
#include "verbs/pd.h"

#include <cerrno>

#include "support.h"
#include "support/in_child.h"

namespace uiw::verbs {
namespace {

using device::Limits;

class Domains : public test::OpenDevice {
 protected:
  void SetUp() override {
    OpenDevice::SetUp();
    if (HasFatalFailure()) return;
    ASSERT_EQ(uiwarp_pd_alloc_parent(context_, pd_, nullptr, &parent_), 0);
  }
  void TearDown() override {
    if (parent_) EXPECT_EQ(uiwarp_pd_dealloc(parent_), 0) << "something was left";
    OpenDevice::TearDown();
  }

  uiwarp_mr* reg(uiwarp_pd* pd) {
    uiwarp_mr* mr = nullptr;
    EXPECT_EQ(uiwarp_mr_reg(pd, buffer_, sizeof buffer_, reinterpret_cast<uintptr_t>(buffer_),
                            IBV_ACCESS_LOCAL_WRITE, &mr, &lkey_, &rkey_),
              0);
    return mr;
  }
  int rereg(uiwarp_mr* mr, int flags, uiwarp_pd* pd) {
    return uiwarp_mr_rereg(mr, flags, pd, nullptr, 0, 0, &lkey_, &rkey_);
  }

  uiwarp_pd* parent_ = nullptr;
  uint8_t buffer_[64] = {};
  uint32_t lkey_ = 0, rkey_ = 0;
};

TEST_F(Domains, AParentDomainStandsForItsProtectionDomain) {
  EXPECT_EQ(parent_->id, pd_->id);
  EXPECT_EQ(uiwarp_pd_dealloc(pd_), EBUSY);
  uiwarp_mr* mr = reg(parent_);
  EXPECT_EQ(context_->memory.find(rkey_)->pd, pd_->id);
  EXPECT_EQ(uiwarp_pd_dealloc(parent_), EBUSY);
  EXPECT_EQ(uiwarp_mr_dereg(mr), 0);
}

TEST_F(Domains, AParentDomainOfAParentDomain) {
  uiwarp_pd* more = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc_parent(context_, parent_, nullptr, &more), 0);
  EXPECT_EQ(more->id, pd_->id);
  EXPECT_EQ(uiwarp_pd_dealloc(parent_), EBUSY);
  EXPECT_EQ(uiwarp_pd_dealloc(more), 0);
}

// The key that a peer has been given names the same memory in the same protection domain.
TEST_F(Domains, MemoryThatGoesFromOneToTheOtherKeepsItsKey) {
  uiwarp_mr* mr = reg(pd_);
  const uint32_t before = rkey_;
  EXPECT_EQ(rereg(mr, IBV_REREG_MR_CHANGE_PD, parent_), 0);
  EXPECT_EQ(rkey_, before);
  EXPECT_EQ(pd_->users.total(), 1u);  // the parent domain
  EXPECT_EQ(uiwarp_pd_dealloc(parent_), EBUSY);
  uiwarp_pd* other = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc(context_, &other), 0);
  EXPECT_EQ(rereg(mr, IBV_REREG_MR_CHANGE_PD, other), 0);
  EXPECT_NE(rkey_, before);
  EXPECT_EQ(parent_->users.total(), 0u);
  EXPECT_EQ(rereg(mr, IBV_REREG_MR_CHANGE_PD, parent_), 0);
  EXPECT_EQ(uiwarp_pd_dealloc(other), 0);
  EXPECT_EQ(uiwarp_mr_dereg(mr), 0);
}

TEST_F(Domains, WhateverIsMadeInAParentDomainHoldsIt) {
  int actual = 0;
  uiwarp_cq* cq = nullptr;
  ASSERT_EQ(uiwarp_cq_create(context_, 4, -1, 0, parent_, nullptr, &cq, &actual), 0);
  EXPECT_EQ(parent_->users.total(), 1u);
  ibv_srq_attr attr{4, 1, 0};
  uiwarp_srq* srq = nullptr;
  ASSERT_EQ(uiwarp_srq_create(parent_, &attr, nullptr, &srq), 0);
  EXPECT_EQ(parent_->users.total(), 2u);
  uiwarp_qp_init init = qp_init(cq, srq);
  uiwarp_qp* qp = nullptr;
  uint32_t qp_num = 0, rkey = 0;
  ASSERT_EQ(uiwarp_qp_create(parent_, &init, &qp, &qp_num), 0);
  EXPECT_EQ(parent_->users.total(), 3u);
  uiwarp_mw* mw = nullptr;
  ASSERT_EQ(uiwarp_mw_alloc(parent_, IBV_MW_TYPE_2, &mw, &rkey), 0);
  EXPECT_EQ(parent_->users.total(), 4u);
  EXPECT_EQ(pd_->users.total(), 1u);
  EXPECT_EQ(uiwarp_mw_dealloc(mw), 0);
  destroy(qp);
  destroy(srq);
  EXPECT_EQ(uiwarp_pd_dealloc(parent_), EBUSY);
  destroy(cq);
}

TEST_F(Domains, AThreadDomainIsHeldByParentDomains) {
  uiwarp_td* td = nullptr;
  ASSERT_EQ(uiwarp_td_alloc(context_, &td), 0);
  uiwarp_pd* with = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc_parent(context_, pd_, td, &with), 0);
  EXPECT_EQ(uiwarp_td_dealloc(td), EBUSY);
  EXPECT_EQ(uiwarp_pd_dealloc(with), 0);
  EXPECT_EQ(uiwarp_td_dealloc(td), 0);
}

TEST_F(Domains, OfAnotherContextAreInvalid) {
  uiwarp_context* other = nullptr;
  int async_fd = -1;
  ASSERT_EQ(uiwarp_context_open(uiwarp_device_find("uiw_lo"), 0, &other, &async_fd), 0);
  uiwarp_td* td = nullptr;
  ASSERT_EQ(uiwarp_td_alloc(other, &td), 0);
  uiwarp_pd* made = nullptr;
  uiwarp_cq* cq = nullptr;
  int actual = 0;
  EXPECT_EQ(uiwarp_pd_alloc_parent(other, pd_, nullptr, &made), EINVAL);
  EXPECT_EQ(uiwarp_pd_alloc_parent(context_, pd_, td, &made), EINVAL);
  EXPECT_EQ(uiwarp_cq_create(other, 4, -1, 0, parent_, nullptr, &cq, &actual), EINVAL);
  EXPECT_EQ(uiwarp_cq_create(context_, 4, -1, 0, pd_, nullptr, &cq, &actual), EINVAL);  // no parent
  EXPECT_EQ(pd_->users.total(), 1u);
  EXPECT_EQ(parent_->users.total(), 0u);
  EXPECT_EQ(uiwarp_td_dealloc(td), 0);
  uiwarp_context_close(other);
  close(async_fd);
}

TEST_F(Domains, EndAtTheLimit) {
  uiwarp_pd* last = nullptr;
  std::vector<uiwarp_pd*> parents;
  while (uiwarp_pd_alloc_parent(context_, pd_, nullptr, &last) == 0) parents.push_back(last);
  EXPECT_EQ(parents.size(), Limits::kMaxPd - 2);  // the fixtures have two
  EXPECT_EQ(uiwarp_pd_alloc_parent(context_, pd_, nullptr, &last), ENOMEM);
  for (uiwarp_pd* each : parents) EXPECT_EQ(uiwarp_pd_dealloc(each), 0);
  std::vector<uiwarp_td*> tds;
  uiwarp_td* td = nullptr;
  while (uiwarp_td_alloc(context_, &td) == 0) tds.push_back(td);
  EXPECT_EQ(tds.size(), Limits::kMaxPd);
  for (uiwarp_td* each : tds) EXPECT_EQ(uiwarp_td_dealloc(each), 0);
}

TEST_F(Domains, AForkedChildMakesNoneButForgetsThem) {
  uiwarp_td* td = nullptr;
  ASSERT_EQ(uiwarp_td_alloc(context_, &td), 0);
  uiwarp_pd* with = nullptr;
  ASSERT_EQ(uiwarp_pd_alloc_parent(context_, pd_, td, &with), 0);
  int actual = 0;
  uiwarp_cq* cq = nullptr;
  ASSERT_EQ(uiwarp_cq_create(context_, 4, -1, 0, with, nullptr, &cq, &actual), 0);
  uiw::test::in_child([&] {
    uiwarp_pd* more = nullptr;
    uiwarp_td* another = nullptr;
    uint32_t comp = 0, async = 0;
    const bool fine = uiwarp_pd_alloc_parent(context_, pd_, nullptr, &more) == ENODEV &&
                      uiwarp_td_alloc(context_, &another) == ENODEV &&
                      uiwarp_pd_dealloc(with) == EBUSY &&
                      uiwarp_cq_destroy(cq, &comp, &async) == 0 && uiwarp_pd_dealloc(with) == 0 &&
                      uiwarp_td_dealloc(td) == 0;
    return fine ? 0 : 1;
  });
  destroy(cq);
  EXPECT_EQ(uiwarp_pd_dealloc(with), 0);
  EXPECT_EQ(uiwarp_td_dealloc(td), 0);
}

}  // namespace
}  // namespace uiw::verbs
