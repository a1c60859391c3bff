// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many work requests a queue takes: one is outstanding until its completion, or a later one of
// its queue, was polled. That is what adapters' drivers do and programs rely on.
#include <functional>
#include <string>
#include <vector>

#include "connected.h"

namespace uiw::provider_test {
namespace {

constexpr int kDepth = 16;  // of both queues, as connected.h has them

class Outstanding : public Connected {
 protected:
  void SetUp() override {
    Connected::SetUp();
    if (HasFatalFailure()) return;
    ends_ = connector_->connect(plain());
    ASSERT_TRUE(ends_.b);
  }
  int send(uint64_t wr_id, unsigned flags) {
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    const int error = ibv_post_send(ends_.a->qp, &wr, &bad);
    EXPECT_EQ(bad, error ? &wr : nullptr);
    return error;
  }
  void post_receives(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(post_recv(ends_.b->qp, static_cast<uint64_t>(i)), 0);
  }
  // Everything sent has arrived, so there is nothing that its sender still waits for.
  void arrive(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(wait_for(peer_cq_).status, IBV_WC_SUCCESS);
  }
  static int poll(ibv_cq* cq) {
    ibv_wc wc;
    return ibv_poll_cq(cq, 1, &wc);
  }

  Ends ends_;
};

TEST_F(Outstanding, SendsUntilTheirCompletionWasPolled) {
  for (int round = 0; round < 3; ++round) {
    post_receives(kDepth);
    for (int i = 0; i < kDepth; ++i)
      ASSERT_EQ(send(static_cast<uint64_t>(i), IBV_SEND_SIGNALED), 0);
    EXPECT_EQ(send(99, IBV_SEND_SIGNALED), ENOMEM);
    arrive(kDepth);
    EXPECT_EQ(send(99, IBV_SEND_SIGNALED), ENOMEM) << "complete, and not polled";
    EXPECT_EQ(wait_for(cq_).wr_id, 0u);
    post_receives(1);
    EXPECT_EQ(send(50, IBV_SEND_SIGNALED), 0);
    EXPECT_EQ(send(99, IBV_SEND_SIGNALED), ENOMEM) << "one was polled";
    arrive(1);
    for (int i = 1; i < kDepth; ++i) EXPECT_EQ(wait_for(cq_).wr_id, static_cast<uint64_t>(i));
    EXPECT_EQ(wait_for(cq_).wr_id, 50u);
  }
}

TEST_F(Outstanding, UnsignaledSendsUntilALaterCompletionWasPolled) {
  for (int round = 0; round < 3; ++round) {
    post_receives(kDepth);
    for (int i = 0; i < kDepth - 1; ++i) ASSERT_EQ(send(1, 0), 0);
    arrive(kDepth - 1);
    EXPECT_EQ(poll(cq_), 0);
    EXPECT_EQ(send(2, IBV_SEND_SIGNALED), 0);
    arrive(1);
    EXPECT_EQ(send(3, 0), ENOMEM);
    EXPECT_EQ(wait_for(cq_).wr_id, 2u);
  }
}

TEST_F(Outstanding, ReceivesUntilTheirCompletionWasPolled) {
  for (int round = 0; round < 3; ++round) {
    post_receives(kDepth);
    EXPECT_EQ(post_recv(ends_.b->qp, 99), ENOMEM);
    for (int i = 0; i < kDepth; ++i) {
      ASSERT_EQ(send(7, IBV_SEND_SIGNALED), 0);
      ASSERT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(post_recv(ends_.b->qp, 99), ENOMEM);
    arrive(1);
    EXPECT_EQ(post_recv(ends_.b->qp, 98), 0);
    EXPECT_EQ(post_recv(ends_.b->qp, 99), ENOMEM);
    arrive(kDepth - 1);
    ASSERT_EQ(send(7, IBV_SEND_SIGNALED), 0);
    ASSERT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
    EXPECT_EQ(wait_for(peer_cq_).wr_id, 98u);
  }
}

// Each completes, signaled or not, and polling them makes room for more.
TEST_F(Outstanding, InErrorAllAreFlushed) {
  connector_.reset();  // no connection: nothing completes of its own accord
  ibv_qp_init_attr init = init_attr(false);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  const int receives = static_cast<int>(init.cap.max_recv_wr);
  for (int i = 0; i < receives; ++i) ASSERT_EQ(post_recv(qp, static_cast<uint64_t>(i)), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(post_recv(qp, 99), ENOMEM);
  ibv_send_wr wr{}, *bad;
  wr.opcode = IBV_WR_RDMA_WRITE;
  int posted = 0;
  while (ibv_post_send(qp, &wr, &bad) == 0) ASSERT_LE(++posted, 100);
  EXPECT_EQ(posted, static_cast<int>(init.cap.max_send_wr));
  for (int i = 0; i < receives + posted; ++i)
    EXPECT_EQ(wait_for(cq_).status, IBV_WC_WR_FLUSH_ERR) << i;
  EXPECT_EQ(poll(cq_), 0);
  EXPECT_EQ(post_recv(qp, 1), 0);
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(poll(cq_), 0) << "of a queue pair that is gone";
}

// A program that begins anew with the same queue pair finds both queues empty and reads nothing of
// what was before.
TEST_F(Outstanding, ResetForgetsThemAndWhatWasNotPolled) {
  ibv_qp_init_attr init = init_attr(false);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ibv_qp* other = ibv_create_qp(pd_, &init);
  ASSERT_TRUE(qp && other);
  const auto move = [&](ibv_qp* moved, ibv_qp_state state, int mask = 0) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    attr.port_num = 1;
    EXPECT_EQ(ibv_modify_qp(moved, &attr, IBV_QP_STATE | mask), 0);
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(post_recv(other, 5), 0);
    for (int i = 0; i < kDepth; ++i) EXPECT_EQ(post_recv(qp, 7), 0);
    EXPECT_EQ(post_recv(qp, 7), ENOMEM);
    for (ibv_qp* each : {qp, other}) move(each, IBV_QPS_ERR);
    move(qp, IBV_QPS_RESET);
    EXPECT_EQ(wait_for(cq_).wr_id, 5u) << "of the other queue pair";
    EXPECT_EQ(poll(cq_), 0);
    move(other, IBV_QPS_RESET);
    for (ibv_qp* each : {qp, other})
      move(each, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  for (ibv_qp* each : {qp, other}) EXPECT_EQ(ibv_destroy_qp(each), 0);
}

// The other ways to post and to poll.
TEST_F(Outstanding, ByTheExtendedCallsToo) {
  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 64;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &cq_init);
  ASSERT_NE(cq, nullptr);
  const Ends ends = connector_->connect([&](rdma_cm_id* id, bool passive) {
    if (passive) return make_qp(id, passive);
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
    init.cap = {.max_send_wr = 4,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    init.qp_type = IBV_QPT_RC;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd_;
    init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
    EXPECT_EQ(rdma_create_qp_ex(id, &init), 0);
  });
  ASSERT_TRUE(ends.b);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(ends.a->qp);
  const auto write = [&](uint64_t id) {
    ibv_wr_start(qp);
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, peer_mr_->rkey, their_address(0));
    ibv_wr_set_sge(qp, mr_->lkey, our_address(0), 8);
    return ibv_wr_complete(qp);
  };
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(write(i), 0);
  EXPECT_EQ(write(9), ENOMEM);
  ibv_poll_cq_attr attr{};
  while (ibv_start_poll(cq, &attr) == ENOENT) {
  }
  EXPECT_EQ(cq->wr_id, 0u);
  ibv_end_poll(cq);
  EXPECT_EQ(write(4), 0);
  EXPECT_EQ(write(9), ENOMEM);
  connector_.reset();
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

// With a completion queue that is exactly as deep as both work queues nothing can be lost, whatever
// a program posts.
TEST_F(Outstanding, ACompletionQueueOfTheirDepthNeverOverflows) {
  ibv_cq* cq = ibv_create_cq(context_, 2 * kDepth, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  ASSERT_EQ(cq->cqe, 2 * kDepth);
  ends_ = connector_->connect([&](rdma_cm_id* id, bool passive) {
    ibv_qp_init_attr init = init_attr(passive);
    if (!passive) init.send_cq = init.recv_cq = cq;
    EXPECT_EQ(rdma_create_qp(id, pd_, &init), 0);
  });
  ASSERT_TRUE(ends_.b);
  for (uint64_t done = 0, posted = 0; done < 20'000;) {
    while (write(ends_.a->qp, posted) == 0) ++posted;
    ibv_wc wc[5];
    const int got = ibv_poll_cq(cq, 5, wc);
    for (int i = 0; i < got; ++i) {
      ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc[i].wr_id, done++);
    }
  }
  EXPECT_EQ(state_of(ends_.a->qp), IBV_QPS_RTS);
  connector_.reset();
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

class OutstandingShared : public Connected {
 protected:
  int post(uint64_t wr_id) {
    ibv_recv_wr wr{}, *bad;
    wr.wr_id = wr_id;
    return ibv_post_srq_recv(srq_, &wr, &bad);
  }
  void send(const Ends& ends) {
    EXPECT_EQ(post_send(ends.a->qp, 0, {our_address(0), 0, mr_->lkey}), 0);
    EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
  }
  ibv_srq* srq_ = nullptr;
};

TEST_F(OutstandingShared, ReceivesUntilTheirCompletionWasPolledOrPurged) {
  ibv_srq_init_attr init{nullptr, {4, 1, 0}};
  srq_ = ibv_create_srq(pd_, &init);
  ASSERT_NE(srq_, nullptr);
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ibv_cq* watched = ibv_create_cq(context_, 16, nullptr, channel, 0);
  ASSERT_TRUE(channel && watched);
  const auto connect = [&](ibv_cq* recv_cq) {
    return connector_->connect([&](rdma_cm_id* id, bool passive) {
      ibv_qp_init_attr init_qp = init_attr(passive);
      if (passive) init_qp.srq = srq_;
      if (passive) init_qp.recv_cq = recv_cq;
      ASSERT_EQ(rdma_create_qp(id, pd_, &init_qp), 0);
    });
  };
  const Ends polled = connect(peer_cq_), purged = connect(watched);
  ASSERT_TRUE(polled.b && purged.b);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post(i), 0);
  EXPECT_EQ(post(9), ENOMEM);
  send(polled);
  EXPECT_EQ(wait_for(peer_cq_).wr_id, 0u);
  EXPECT_EQ(post(4), 0);
  EXPECT_EQ(post(9), ENOMEM);
  // It is there, and nobody polls it.
  send(purged);
  EXPECT_EQ(ibv_req_notify_cq(watched, 0), 0);
  ibv_cq* told = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel, &told, &its_context), 0);
  ibv_ack_cq_events(told, 1);
  EXPECT_EQ(post(9), ENOMEM);
  rdma_destroy_qp(purged.b);
  EXPECT_EQ(post(5), 0);
  EXPECT_EQ(post(9), ENOMEM);
  connector_.reset();
  EXPECT_EQ(ibv_destroy_cq(watched), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  EXPECT_EQ(ibv_destroy_srq(srq_), 0);
}

}  // namespace
}  // namespace uiw::provider_test
