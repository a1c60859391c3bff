// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A shared receive queue through the stock calls: its events, and what destruction waits for.
#include <atomic>
#include <thread>

#include "connected.h"

namespace uiw::provider_test {
namespace {

class SharedQueue : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    if (HasFatalFailure()) return;
    ibv_srq_init_attr init{nullptr, {8, 1, 0}};
    srq_ = ibv_create_srq(pd_, &init);
    ASSERT_NE(srq_, nullptr);
    for (Ends& ends : ends_) {
      ends = connector_->connect([this](rdma_cm_id* id, bool passive) {
        ibv_qp_init_attr init_qp = init_attr(passive);
        if (passive) init_qp.srq = srq_;
        ASSERT_EQ(rdma_create_qp(id, pd_, &init_qp), 0);
        // "ignored if the QP is to be associated with an SRQ" (ibv_create_qp)
        if (passive) EXPECT_EQ(init_qp.cap.max_recv_wr, 0u);
      });
      ASSERT_TRUE(ends.a && ends.b);
    }
  }
  void TearDown() override {
    connector_.reset();
    if (srq_) EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    Connected::TearDown();
  }
  void post(uint64_t wr_id) {
    ibv_sge sge{their_address(wr_id * 64), 64, peer_mr_->lkey};
    ibv_recv_wr wr{}, *bad;
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    EXPECT_EQ(ibv_post_srq_recv(srq_, &wr, &bad), 0);
  }
  void send(const Ends& ends) {
    EXPECT_EQ(post_send(ends.a->qp, 0, {our_address(0), 10, mr_->lkey}), 0);
    EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
  }

  ibv_srq* srq_ = nullptr;
  Ends ends_[2];
};

TEST_F(SharedQueue, TellsThatItRunsLowOnce) {
  ibv_srq_attr attr{0, 0, 2};
  for (uint64_t i = 0; i < 4; ++i) post(i);
  EXPECT_EQ(ibv_modify_srq(srq_, &attr, IBV_SRQ_LIMIT), 0);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(readable(context_->async_fd));
    send(ends_[i % 2]);
    const ibv_wc wc = wait_for(peer_cq_);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, i);  // one queue, whoever receives
    EXPECT_EQ(wc.qp_num, ends_[i % 2].b->qp->qp_num);
  }
  ibv_async_event event = next_async_event();  // three of four are taken
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq_);
  ASSERT_EQ(ibv_query_srq(srq_, &attr), 0);
  EXPECT_EQ(attr.srq_limit, 0u);  // not armed any more
  send(ends_[0]);
  EXPECT_EQ(wait_for(peer_cq_).wr_id, 3u);
  EXPECT_FALSE(readable(context_->async_fd));

  // Destruction waits until all events about the queue were acknowledged (ibv_get_async_event).
  connector_.reset();
  while (readable(context_->async_fd)) {
    ibv_async_event last_wqe = next_async_event();
    ibv_ack_async_event(&last_wqe);
  }
  std::atomic<bool> acknowledged{false};
  std::thread destroyer([&] {
    EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    EXPECT_TRUE(acknowledged);
  });
  sched_yield();
  acknowledged = true;
  ibv_ack_async_event(&event);
  destroyer.join();
  srq_ = nullptr;
}

TEST_F(SharedQueue, TellsWhichQueuePairTakesNoMoreAndKeepsItsReceives) {
  for (uint64_t i = 0; i < 3; ++i) post(i);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(ends_[0].b->qp, &attr, IBV_QP_STATE), 0);
  ibv_async_event event = next_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, ends_[0].b->qp);
  ibv_ack_async_event(&event);
  // Nothing was flushed: the other one gets them all.
  for (uint64_t i = 0; i < 3; ++i) {
    send(ends_[1]);
    const ibv_wc wc = wait_for(peer_cq_);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wr_id, i);
  }
}

// It may grow while queue pairs take from it.
TEST_F(SharedQueue, IsResizedUnderTraffic) {
  uint64_t posted = 0, received = 0;
  ibv_srq_attr attr{};
  for (uint32_t depth : {8u, 20u, 9u, 64u}) {
    while (posted < received + 8) post(posted++ % 1000);
    attr.max_wr = depth;
    EXPECT_EQ(ibv_modify_srq(srq_, &attr, IBV_SRQ_MAX_WR), 0);
    for (int i = 0; i < 5; ++i) {
      send(ends_[received % 2]);
      const ibv_wc wc = wait_for(peer_cq_);
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, received++);
    }
  }
}

}  // namespace
}  // namespace uiw::provider_test
