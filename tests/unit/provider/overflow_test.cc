// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A completion queue that loses a completion: RFC 5040 8.1.1(10) and what verbs promise.
#include <set>

#include "connected.h"

namespace uiw::provider_test {
namespace {

class Overflow : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    if (HasFatalFailure()) return;
    small_ = ibv_create_cq(context_, 1, nullptr, nullptr, 0);
    ASSERT_NE(small_, nullptr);
    ASSERT_EQ(small_->cqe, 1);
  }
  void TearDown() override {
    connector_.reset();
    if (small_) EXPECT_EQ(ibv_destroy_cq(small_), 0);
    Connected::TearDown();
  }
  // The active end completes into small_, one direction or both.
  Ends connect(bool sends, bool receives) {
    return connector_->connect([=, this](rdma_cm_id* id, bool passive) {
      ibv_qp_init_attr init = init_attr(passive);
      if (!passive && sends) init.send_cq = small_;
      if (!passive && receives) init.recv_cq = small_;
      ASSERT_EQ(rdma_create_qp(id, pd_, &init), 0);
    });
  }

  ibv_cq* small_ = nullptr;
};

TEST_F(Overflow, EndsEveryQueuePairThatUsesTheQueueAndNoOther) {
  const Ends loser = connect(true, true), sends = connect(true, false),
             receives = connect(false, true);
  const Ends other = connect(false, false);
  ASSERT_TRUE(other.b);
  EXPECT_EQ(write(loser.a->qp, 1), 0);
  EXPECT_EQ(write(loser.a->qp, 2), 0);

  ibv_async_event event = next_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, small_);
  ibv_ack_async_event(&event);
  // All six of the three connections: the other ends are told by a Terminate.
  std::set<ibv_qp*> told, users;
  for (const Ends& ends : {loser, sends, receives}) users.insert({ends.a->qp, ends.b->qp});
  while (told.size() < users.size()) {
    event = next_async_event();
    EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
    if (!told.insert(event.element.qp).second) ADD_FAILURE() << "told twice";
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(told, users);
  for (ibv_qp* qp : users) EXPECT_EQ(state_of(qp), IBV_QPS_ERR);

  // What the queue has taken can be polled; the rest is lost.
  EXPECT_EQ(wait_for(small_).wr_id, 1u);
  // The others live, and nobody new is taken in.
  EXPECT_EQ(write(other.a->qp, 3), 0);
  EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
  ibv_qp_init_attr init = init_attr(false);
  init.recv_cq = small_;
  EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &init), EINVAL);
  init.send_cq = small_;
  EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &init), EINVAL);
  EXPECT_EQ(state_of(other.a->qp), IBV_QPS_RTS);
}

TEST_F(Overflow, QueuePairsThatWereDestroyedAreForgotten) {
  ibv_qp* qps[3];
  for (ibv_qp*& qp : qps) {
    ibv_qp_init_attr init = init_attr(false);
    init.send_cq = init.recv_cq = small_;
    qp = ibv_create_qp(pd_, &init);
    ASSERT_NE(qp, nullptr);
  }
  EXPECT_EQ(ibv_destroy_qp(qps[1]), 0);
  for (uint64_t i = 0; i < 2; ++i) {
    ibv_recv_wr wr{}, *bad;
    EXPECT_EQ(ibv_post_recv(qps[0], &wr, &bad), 0);
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(qps[0], &attr, IBV_QP_STATE), 0);  // flushes two completions
  ibv_async_event event = next_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  ibv_ack_async_event(&event);
  event = next_async_event();  // the first was in ERR already
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, qps[2]);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_qp(qps[0]), 0);
  EXPECT_EQ(ibv_destroy_qp(qps[2]), 0);
}

}  // namespace
}  // namespace uiw::provider_test
