// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Extended completion queues: the iterator and what it can read.
#include <atomic>
#include <thread>

#include "connected.h"

namespace uiw::provider_test {
namespace {

class ExtendedQueues : public Connected {
 protected:
  void TearDown() override {
    connector_.reset();
    if (ex_) EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(ex_)), 0);
    Connected::TearDown();
  }
  static ibv_cq_init_attr_ex attr(uint32_t flags = 0) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 100;
    attr.wc_flags = IBV_WC_STANDARD_FLAGS;
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    attr.flags = flags;
    return attr;
  }
  // Both directions of the active end complete into ex_.
  void connect() {
    const Ends ends = connector_->connect([this](rdma_cm_id* id, bool passive) {
      ibv_qp_init_attr init = init_attr(passive);
      if (!passive) init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(ex_);
      EXPECT_EQ(rdma_create_qp(id, pd_, &init), 0);
    });
    ASSERT_TRUE(ends.a && ends.b);
    qp_ = ends.a->qp;
    peer_ = ends.b->qp;
  }
  int start() {
    ibv_poll_cq_attr none{};
    int result = ENOENT;
    EXPECT_TRUE(wait_until([&] { return (result = ibv_start_poll(ex_, &none)) != ENOENT; }));
    return result;
  }

  ibv_cq_ex* ex_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

class Iterator : public ExtendedQueues, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(Iterator, GivesWhatPollingGives) {
  int mine = 0;
  ibv_cq_init_attr_ex init = attr(GetParam());
  init.cq_context = &mine;
  ex_ = ibv_create_cq_ex(context_, &init);
  ASSERT_NE(ex_, nullptr);
  EXPECT_EQ(ex_->cq_context, &mine);
  EXPECT_GE(ex_->cqe, 100);
  connect();
  ibv_poll_cq_attr none{};
  EXPECT_EQ(ibv_start_poll(ex_, &none), ENOENT);  // and no ibv_end_poll: usable as before
  EXPECT_EQ(ibv_start_poll(ex_, &none), ENOENT);
  none.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(ex_, &none), EINVAL);

  receive(peer_, 1, 0, 500);
  receive(peer_, 2, 500, 500);
  EXPECT_EQ(post_send(qp_, 10, {our_address(0), 123, mr_->lkey}), 0);
  EXPECT_EQ(post_send(qp_, 11, {our_address(0), 1, mr_->lkey + 1}), 0);  // a key that nobody has
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(ex_->wr_id, 10u);
  EXPECT_EQ(ex_->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(ex_), IBV_WC_SEND);
  EXPECT_EQ(ibv_wc_read_qp_num(ex_), qp_->qp_num);
  EXPECT_EQ(ibv_wc_read_wc_flags(ex_), 0u);
  EXPECT_EQ(ibv_wc_read_vendor_err(ex_), 0u);
  EXPECT_EQ(ibv_wc_read_slid(ex_), 0u);
  EXPECT_EQ(ibv_wc_read_sl(ex_), 0u);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(ex_), 0u);
  ASSERT_TRUE(wait_until([&] { return ibv_next_poll(ex_) == 0; }));
  EXPECT_EQ(ex_->wr_id, 11u);
  EXPECT_EQ(ex_->status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(ibv_next_poll(ex_), ENOENT);
  ibv_end_poll(ex_);
  const ibv_wc received = wait_for(peer_cq_);
  EXPECT_EQ(received.wr_id, 1u);
  EXPECT_EQ(received.byte_len, 123u);
}

TEST_P(Iterator, ReadsReceives) {
  ibv_cq_init_attr_ex init = attr(GetParam());
  ex_ = ibv_create_cq_ex(context_, &init);
  ASSERT_NE(ex_, nullptr);
  connect();
  receive(qp_, 5, 0, 500);
  receive(peer_, 1, 500, 500);
  // The active end speaks first.
  EXPECT_EQ(post_send(qp_, 4, {our_address(0), 7, mr_->lkey}), 0);
  EXPECT_EQ(wait_for(peer_cq_).wr_id, 1u);
  EXPECT_EQ(post_send(peer_, 2, {their_address(2000), 321, peer_mr_->lkey}), 0);
  for (uint64_t id : {uint64_t{4}, uint64_t{5}}) {
    ASSERT_EQ(start(), 0);
    EXPECT_EQ(ex_->wr_id, id);
    EXPECT_EQ(ex_->status, IBV_WC_SUCCESS);
    if (id == 5) {
      EXPECT_EQ(ibv_wc_read_opcode(ex_), IBV_WC_RECV);
      EXPECT_EQ(ibv_wc_read_byte_len(ex_), 321u);
      EXPECT_EQ(ibv_wc_read_src_qp(ex_), 0u);  // of a datagram
      EXPECT_EQ(ibv_wc_read_imm_data(ex_), 0u);
    }
    ibv_end_poll(ex_);
  }
}

// Both ways to poll may be used with one queue.
TEST_P(Iterator, MixesWithPolling) {
  ibv_cq_init_attr_ex init = attr(GetParam());
  ex_ = ibv_create_cq_ex(context_, &init);
  ASSERT_NE(ex_, nullptr);
  connect();
  for (uint64_t i = 0; i < 4; ++i) receive(peer_, i, 0, 10);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(post_send(qp_, i, {our_address(0), 4, mr_->lkey}), 0);
  for (uint64_t i = 0; i < 4; i += 2) {
    ASSERT_EQ(start(), 0);
    EXPECT_EQ(ex_->wr_id, i);
    ibv_end_poll(ex_);
    EXPECT_EQ(wait_for(ibv_cq_ex_to_cq(ex_)).wr_id, i + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Queues, Iterator,
                         ::testing::Values(0u, uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}));

// One iterates, the other waits until it has ended; every completion is seen once, whole.
TEST_F(ExtendedQueues, ThreadsTakeTurns) {
  constexpr uint64_t kMessages = 2000;
  ibv_cq_init_attr_ex init = attr();
  init.cqe = kMessages;
  ex_ = ibv_create_cq_ex(context_, &init);
  ASSERT_NE(ex_, nullptr);
  connect();
  uint64_t next = 0;  // of who iterates
  std::atomic<uint64_t> total{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      ibv_poll_cq_attr none{};
      while (total < kMessages) {
        if (ibv_start_poll(ex_, &none) != 0) {
          sched_yield();
          continue;
        }
        do {
          EXPECT_EQ(ex_->status, IBV_WC_SUCCESS);
          EXPECT_EQ(ibv_wc_read_opcode(ex_), IBV_WC_RDMA_WRITE);
          EXPECT_EQ(ex_->wr_id, next++);
          ++total;
        } while (ibv_next_poll(ex_) == 0);
        ibv_end_poll(ex_);
      }
    });
  }
  for (uint64_t i = 0; i < kMessages;) {
    const int error = write(qp_, i);
    if (error == 0) ++i;
    if (error != 0 && error != ENOMEM) {
      ADD_FAILURE() << error;
      total = kMessages;
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(next, kMessages);
}

TEST_F(ExtendedQueues, WhoIteratesGetsWhatComesMeanwhile) {
  constexpr uint64_t kMessages = 100;
  ibv_cq_init_attr_ex init = attr();
  ex_ = ibv_create_cq_ex(context_, &init);
  ASSERT_NE(ex_, nullptr);
  connect();
  ibv_poll_cq_attr none{};
  EXPECT_EQ(write(qp_, 0), 0);
  ASSERT_EQ(start(), 0);
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      if (ibv_start_poll(ex_, &none) != 0) continue;
      EXPECT_TRUE(over) << "it has begun before the first one's end";
      ibv_end_poll(ex_);
    }
  });
  for (uint64_t i = 1; i < kMessages && !HasFailure(); ++i) {
    EXPECT_EQ(write(qp_, i), 0);
    EXPECT_TRUE(wait_until([&] { return ibv_next_poll(ex_) == 0; })) << "another has taken it";
    EXPECT_EQ(ex_->wr_id, i);
  }
  over = true;
  ibv_end_poll(ex_);
  other.join();
}

TEST_F(ExtendedQueues, WhatACompletionDoesNotHaveIsRefused) {
  for (uint64_t flag :
       {IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
        IBV_WC_EX_WITH_TM_INFO, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK}) {
    ibv_cq_init_attr_ex init = attr();
    init.wc_flags |= flag;
    EXPECT_NULL_ERRNO(ibv_create_cq_ex(context_, &init), EOPNOTSUPP);
  }
  ibv_cq_init_attr_ex init = attr(IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
  EXPECT_NULL_ERRNO(ibv_create_cq_ex(context_, &init), EOPNOTSUPP);
  init = attr();
  init.comp_mask |= 1 << 2;
  EXPECT_NULL_ERRNO(ibv_create_cq_ex(context_, &init), EOPNOTSUPP);
  init = attr();
  init.cqe = 0;
  EXPECT_NULL_ERRNO(ibv_create_cq_ex(context_, &init), EINVAL);
  init = attr();
  init.comp_vector = static_cast<uint32_t>(context_->num_comp_vectors);
  EXPECT_NULL_ERRNO(ibv_create_cq_ex(context_, &init), EINVAL);
}

}  // namespace
}  // namespace uiw::provider_test
