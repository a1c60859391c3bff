// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory windows, invalidation and ibv_rereg_mr() as a program uses them, by the stock libibverbs.
#include "connected.h"

namespace uiw::provider_test {
namespace {

constexpr int kBindable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

class Windows : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    region_ = ibv_reg_mr(pd_, theirs_, kSize, +kBindable);
    ASSERT_NE(region_, nullptr);
    ends_ = connector_->connect(plain());
    ASSERT_TRUE(ends_.a && ends_.b);
    // Until the first message of the active end the passive one sends nothing.
    EXPECT_EQ(write(ends_.a->qp, 1), 0);
    EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
  }
  void TearDown() override {
    connector_.reset();
    if (window_) EXPECT_EQ(ibv_dealloc_mw(window_), 0);
    if (region_) EXPECT_EQ(ibv_dereg_mr(region_), 0);
    Connected::TearDown();
  }
  ibv_mw* alloc(ibv_mw_type type) { return window_ = ibv_alloc_mw(pd_, type); }
  ibv_mw_bind_info part(size_t offset, size_t length, unsigned access) {
    return {region_, their_address(offset), length, access};
  }
  // The passive end binds; the window is of type 2.
  ibv_wc bind(uint32_t rkey, const ibv_mw_bind_info& info) {
    ibv_send_wr wr{}, *bad;
    wr.wr_id = 70;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = window_;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = info;
    EXPECT_EQ(ibv_post_send(ends_.b->qp, &wr, &bad), 0);
    const ibv_wc wc = wait_for(peer_cq_);
    EXPECT_EQ(wc.wr_id, 70u);
    return wc;
  }
  // The active end writes, and a Read of nothing says that it has arrived.
  ibv_wc_status write_to(uint64_t address, uint32_t rkey, uint32_t length) {
    ibv_sge sge{our_address(0), length, mr_->lkey};
    ibv_send_wr read{}, wr{}, *bad;
    read.wr_id = 81;
    read.opcode = IBV_WR_RDMA_READ;
    read.send_flags = IBV_SEND_SIGNALED;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma = {address, rkey};
    wr.next = &read;
    EXPECT_EQ(ibv_post_send(ends_.a->qp, &wr, &bad), 0);
    ibv_wc wc = wait_for(cq_);
    if (wc.wr_id != 81) wc = wait_for(cq_);  // the Write's own, when it is blamed
    return wc.status;
  }
  // Of the passive end, whose peer's event may come before it, from another engine. Acknowledged,
  // or destroying the queue pairs would wait for it.
  ibv_event_type passive_ends_event() {
    for (int either = 0; either < 2; ++either) {
      ibv_async_event event = next_async_event();
      ibv_ack_async_event(&event);
      if (event.element.qp == ends_.b->qp) return event.event_type;
    }
    ADD_FAILURE() << "both events are the active end's";
    return {};
  }
  int send_with_inv(ibv_qp* qp, uint32_t rkey) {
    ibv_send_wr wr{}, *bad;
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = rkey;
    return ibv_post_send(qp, &wr, &bad);
  }

  ibv_mr* region_ = nullptr;
  ibv_mw* window_ = nullptr;
  Ends ends_;
};

TEST_F(Windows, TheDeviceSaysWhatItHas) {
  ibv_device_attr device;
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  EXPECT_GT(device.max_mw, 0);
  EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
  EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
  EXPECT_FALSE(device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
  EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
  ibv_device_attr_ex extended;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &extended), 0);
  EXPECT_EQ(extended.device_cap_flags_ex, device.device_cap_flags);
}

TEST_F(Windows, Type2FromBindingToInvalidation) {
  ASSERT_NE(alloc(IBV_MW_TYPE_2), nullptr);
  EXPECT_EQ(window_->context, context_);
  EXPECT_EQ(window_->pd, pd_);
  EXPECT_EQ(window_->type, IBV_MW_TYPE_2);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  uint32_t rkey = window_->rkey;
  for (int round = 0; round < 3; ++round) {
    rkey = ibv_inc_rkey(rkey);
    // The last byte is what counts.
    const uint32_t asked = round == 1 ? 0xabcdef00 | (rkey & 0xff) : rkey;
    const ibv_wc bound = bind(asked, part(1000, 500, IBV_ACCESS_REMOTE_WRITE));
    ASSERT_EQ(bound.status, IBV_WC_SUCCESS);
    EXPECT_EQ(bound.opcode, IBV_WC_BIND_MW);
    EXPECT_EQ(ibv_dereg_mr(region_), EBUSY);
    EXPECT_EQ(write_to(their_address(1100), rkey, 400), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(&theirs_[1100], ours_, 400), 0);
    std::memset(theirs_, 0, kSize);
    receive(ends_.b->qp, 90, 0, 0);
    ASSERT_EQ(send_with_inv(ends_.a->qp, rkey), 0);
    const ibv_wc got = wait_for(peer_cq_);
    EXPECT_EQ(got.wr_id, 90u);
    EXPECT_EQ(got.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(got.invalidated_rkey, rkey);
  }
  EXPECT_NE(write_to(their_address(1100), rkey, 400), IBV_WC_SUCCESS);
  EXPECT_EQ(theirs_[1100], 0);
}

TEST_F(Windows, Type2IsNotBoundToNothing) {
  ASSERT_NE(alloc(IBV_MW_TYPE_2), nullptr);
  EXPECT_EQ(bind(ibv_inc_rkey(window_->rkey), part(0, 0, IBV_ACCESS_REMOTE_WRITE)).status,
            IBV_WC_MW_BIND_ERR);
}

TEST_F(Windows, Type2TakenBackByLocalInvalidation) {
  ASSERT_NE(alloc(IBV_MW_TYPE_2), nullptr);
  const uint32_t rkey = ibv_inc_rkey(window_->rkey);
  ASSERT_EQ(bind(rkey, part(0, kSize, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED)).status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(write_to(10, rkey, 100), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(&theirs_[10], ours_, 100), 0);
  ibv_send_wr wr{}, *bad;
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = rkey;
  ASSERT_EQ(ibv_post_send(ends_.b->qp, &wr, &bad), 0);
  const ibv_wc done = wait_for(peer_cq_);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_LOCAL_INV);
  EXPECT_NE(write_to(2000, rkey, 100), IBV_WC_SUCCESS);
  EXPECT_EQ(theirs_[2001], 0);
}

TEST_F(Windows, Type1ByIbvBindMw) {
  ASSERT_NE(alloc(IBV_MW_TYPE_1), nullptr);
  const uint32_t unbound = window_->rkey;
  ibv_mw_bind request{};
  request.wr_id = 71;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_info = part(0, 4096, IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(ibv_bind_mw(ends_.b->qp, window_, &request), 0);
  const uint32_t first = window_->rkey;
  EXPECT_NE(first, unbound);
  EXPECT_EQ(first >> 8, unbound >> 8);
  ibv_wc done = wait_for(peer_cq_);
  EXPECT_EQ(done.wr_id, 71u);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(write_to(their_address(5), first, 100), IBV_WC_SUCCESS);

  request.bind_info = part(4096, 4096, IBV_ACCESS_REMOTE_WRITE);  // moved
  ASSERT_EQ(ibv_bind_mw(ends_.b->qp, window_, &request), 0);
  const uint32_t second = window_->rkey;
  EXPECT_NE(second, first);
  EXPECT_EQ(wait_for(peer_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(write_to(their_address(5000), second, 100), IBV_WC_SUCCESS);

  request.bind_info = {};  // unbound
  ASSERT_EQ(ibv_bind_mw(ends_.b->qp, window_, &request), 0);
  EXPECT_EQ(wait_for(peer_cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_dereg_mr(region_), 0);
  region_ = nullptr;
  EXPECT_NE(write_to(their_address(5000), second, 100), IBV_WC_SUCCESS);
}

TEST_F(Windows, WhatIbvBindMwRefuses) {
  ASSERT_NE(alloc(IBV_MW_TYPE_1), nullptr);
  const uint32_t before = window_->rkey;
  ibv_qp_init_attr init = init_attr(false);
  ibv_qp* idle = ibv_create_qp(pd_, &init);
  ASSERT_NE(idle, nullptr);
  ibv_mw_bind request{};
  request.bind_info = part(0, 8, IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(ibv_bind_mw(idle, window_, &request), EINVAL);  // not connected
  EXPECT_EQ(window_->rkey, before);
  EXPECT_EQ(ibv_destroy_qp(idle), 0);
  EXPECT_NULL_ERRNO(ibv_alloc_mw(pd_, static_cast<ibv_mw_type>(3)), EINVAL);
}

TEST_F(Windows, ABindingWithoutTheRightIsToldByItsCompletion) {
  ASSERT_NE(alloc(IBV_MW_TYPE_2), nullptr);
  ibv_mw_bind_info info = part(0, 8, IBV_ACCESS_REMOTE_READ);
  info.mr = peer_mr_;  // without IBV_ACCESS_MW_BIND
  EXPECT_EQ(bind(ibv_inc_rkey(window_->rkey), info).status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(passive_ends_event(), IBV_EVENT_QP_FATAL);
}

TEST_F(Windows, ByIbvWr) {
  ends_ = connector_->connect(
      extended(IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV));
  ASSERT_TRUE(ends_.a && ends_.b);
  ASSERT_NE(alloc(IBV_MW_TYPE_2), nullptr);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(ends_.a->qp);
  ASSERT_NE(ex, nullptr);
  const uint32_t rkey = ibv_inc_rkey(window_->rkey);
  const ibv_mw_bind_info info = part(0, 100, IBV_ACCESS_REMOTE_READ);
  receive(ends_.b->qp, 95, 0, 0);
  ibv_wr_start(ex);
  ex->wr_flags = IBV_SEND_SIGNALED;
  ex->wr_id = 1;
  ibv_wr_bind_mw(ex, window_, rkey, &info);
  ex->wr_id = 2;
  ibv_wr_local_inv(ex, rkey);
  ex->wr_id = 3;
  ibv_wr_send_inv(ex, 0x7700);  // nothing the peer has
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  constexpr ibv_wc_opcode kOpcodes[] = {IBV_WC_BIND_MW, IBV_WC_LOCAL_INV, IBV_WC_SEND};
  for (uint64_t i = 0; i < 3; ++i) {
    const ibv_wc wc = wait_for(cq_);
    EXPECT_EQ(wc.wr_id, i + 1);
    EXPECT_EQ(wc.opcode, kOpcodes[i]);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  const ibv_wc refused = wait_for(peer_cq_);
  EXPECT_EQ(refused.wr_id, 95u);
  EXPECT_EQ(refused.status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(passive_ends_event(), IBV_EVENT_QP_ACCESS_ERR);
}

TEST_F(Windows, RightsGrantedAndRevokedByIbvReregMr) {
  const uint32_t rkey = region_->rkey;
  const int more = kBindable | IBV_ACCESS_REMOTE_WRITE;
  // What is not to be changed is not looked at.
  alignas(ibv_pd) char no_domain[256];
  std::memset(no_domain, 0x5a, sizeof no_domain);
  auto* const ignored = reinterpret_cast<ibv_pd*>(no_domain);
  ASSERT_EQ(ibv_rereg_mr(region_, IBV_REREG_MR_CHANGE_ACCESS, ignored, nullptr, 0, more), 0);
  EXPECT_EQ(region_->rkey, rkey);
  EXPECT_EQ(write_to(their_address(7), rkey, 100), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(&theirs_[7], ours_, 100), 0);
  ASSERT_EQ(ibv_rereg_mr(region_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kBindable), 0);
  EXPECT_NE(write_to(their_address(3000), rkey, 100), IBV_WC_SUCCESS);
  EXPECT_EQ(theirs_[3001], 0);
}

TEST_F(Windows, AnotherPlaceByIbvReregMr) {
  ibv_pd* other = ibv_alloc_pd(context_);
  ASSERT_NE(other, nullptr);
  const uint32_t before = region_->rkey;
  ASSERT_EQ(ibv_rereg_mr(region_,
                         IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
                             IBV_REREG_MR_CHANGE_ACCESS,
                         other, &theirs_[100], 200, IBV_ACCESS_LOCAL_WRITE),
            0);
  EXPECT_NE(region_->rkey, before);
  EXPECT_EQ(region_->lkey, region_->rkey);
  EXPECT_EQ(region_->pd, other);
  EXPECT_EQ(region_->addr, &theirs_[100]);
  EXPECT_EQ(region_->length, 200u);
  EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(region_), 0);
  region_ = nullptr;
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Windows, WhatIbvReregMrRefuses) {
  EXPECT_EQ(ibv_rereg_mr(region_, 1 << 5, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_rereg_mr(region_, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 8, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ibv_rereg_mr(region_, IBV_REREG_MR_CHANGE_PD, pd_, nullptr, 0, IBV_ACCESS_LOCAL_WRITE),
            IBV_REREG_MR_ERR_INPUT);
  errno = 0;
  EXPECT_EQ(ibv_rereg_mr(region_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_REMOTE_WRITE),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_rereg_mr(region_, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(ibv_rereg_mr(region_, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                         reinterpret_cast<void*>(8), 8, 0),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EFAULT);
}

}  // namespace
}  // namespace uiw::provider_test
