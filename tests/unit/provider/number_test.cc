// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs connected by number and GID, as a program sees them that has one completion queue.
#include <unistd.h>

#include <array>
#include <atomic>
#include <initializer_list>
#include <thread>
#include <utility>

#include "connected.h"

namespace uiw::provider_test {
namespace {

// These and in this order.
void expect_completions(ibv_cq* cq,
                        std::initializer_list<std::pair<uint64_t, ibv_wc_status>> expected) {
  for (const auto& [wr_id, status] : expected) {
    const ibv_wc wc = wait_for(cq);
    EXPECT_EQ(wc.wr_id, wr_id);
    EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
  }
}

class Numbered : public Verbs {
 protected:
  void SetUp() override {
    Verbs::SetUp();
    cq_ = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
    mr_ = reg(memory_, sizeof memory_, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_TRUE(cq_ && mr_);
    ASSERT_EQ(ibv_query_gid(context_, 1, 0, &gid_), 0);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    Verbs::TearDown();
  }
  // To RTS, its peer having this number and an address of this host.
  void connect(ibv_qp* qp, uint32_t number, uint32_t own_psn = 0, uint32_t peer_psn = 0) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = gid_;
    attr.dest_qp_num = number;
    attr.rq_psn = peer_psn;
    attr.max_dest_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = own_psn;
    attr.timeout = attr.retry_cnt = 1;
    attr.max_rd_atomic = 1;
    ASSERT_EQ(ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  // Both completions of a message from `sender`, wr_id 1, to a receive 2, in any order.
  void pass(ibv_qp* sender, ibv_qp* receiver, const char* text) {
    std::strcpy(memory_, text);
    std::strcpy(memory_ + kPart, "");
    EXPECT_EQ(post_recv(receiver, 2, at(kPart)), 0);
    EXPECT_EQ(post_send(sender, 1, at(0)), 0);
    uint64_t seen = 0;
    for (int i = 0; i < 2; ++i) {
      const ibv_wc wc = wait_for(cq_);
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
      EXPECT_EQ(wc.qp_num, wc.wr_id == 1 ? sender->qp_num : receiver->qp_num);
      seen += wc.wr_id;
    }
    EXPECT_EQ(seen, 3u);
    EXPECT_STREQ(memory_ + kPart, text);
  }
  ibv_sge at(size_t offset) {
    return {reinterpret_cast<uintptr_t>(memory_) + offset, kPart, mr_->lkey};
  }

  static constexpr uint32_t kPart = 64;
  char memory_[2 * kPart] = {};
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_gid gid_{};
};

// One end is of an imported device, whose protection domain and region are the other end's.
TEST_F(Numbered, AQueuePairOfAnImportedDomainUsesTheImportedRegion) {
  ibv_context* imported = ibv_import_device(dup(context_->cmd_fd));
  ASSERT_NE(imported, nullptr);
  ibv_pd* pd = ibv_import_pd(imported, pd_->handle);
  ASSERT_NE(pd, nullptr);
  ibv_mr* region = ibv_import_mr(pd, mr_->handle);
  ibv_cq* cq = ibv_create_cq(imported, 16, nullptr, nullptr, 0);
  ASSERT_TRUE(region && cq);
  ibv_qp_init_attr init = qp_attr(cq);
  ibv_qp* one = ibv_create_qp(pd, &init);
  ibv_qp* other = make_qp(cq_);
  ASSERT_TRUE(one && other);
  connect(one, other->qp_num, 0x111111, 0x222222);
  connect(other, one->qp_num, 0x222222, 0x111111);
  std::strcpy(memory_, "shared");
  ibv_sge source = at(0);
  source.lkey = region->lkey;
  EXPECT_EQ(post_recv(other, 2, at(kPart)), 0);
  EXPECT_EQ(post_send(one, 1, source), 0);
  EXPECT_EQ(wait_for(cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(memory_ + kPart, "shared");

  // In the order of pyverbs: the queue pair is the last.
  ibv_unimport_mr(region);
  ibv_unimport_pd(pd);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(one), 0);
  EXPECT_EQ(ibv_destroy_qp(other), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_close_device(imported), 0);
}

TEST_F(Numbered, TwoOfOneProcess) {
  ibv_qp *one = make_qp(cq_), *other = make_qp(cq_);
  connect(one, other->qp_num, 0x111111, 0x222222);
  connect(other, one->qp_num, 0x222222, 0x111111);
  pass(one, other, "there");
  pass(other, one, "and back");
  EXPECT_EQ(ibv_destroy_qp(one), 0);
  EXPECT_EQ(ibv_destroy_qp(other), 0);
}

// As programs do that keep queue pairs for later connections (brpc): what was posted for the last
// peer is forgotten, and neither it nor its connection is mistaken for the next one.
TEST_F(Numbered, AgainAfterResetWithAnotherPeerAndTheSame) {
  ibv_qp* const ours[] = {make_qp(cq_), make_qp(cq_)};
  ibv_qp* const theirs[] = {make_qp(cq_), make_qp(cq_)};
  for (int turn = 0; turn < 6; ++turn) {
    const int shift = turn / 2 % 2;  // two turns with the same peer
    for (int i : {0, 1}) {
      ibv_qp *one = ours[i], *other = theirs[i ^ shift];
      connect(one, other->qp_num);
      connect(other, one->qp_num);
      pass(one, other, "there");
      pass(other, one, "and back");
      EXPECT_EQ(post_recv(other, 3, at(kPart)), 0);
    }
    for (ibv_qp* qp : {ours[0], theirs[1], theirs[0], ours[1]}) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RESET;
      EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    }
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq_, 1, &wc), 0);
  }
  for (ibv_qp* qp : {ours[0], ours[1], theirs[0], theirs[1]}) EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// What the one has as rq_psn is not what the other has as sq_psn: adapters drop such packets.
// ibv_modify_qp(3): "none of the attributes will be modified".
TEST_F(Numbered, ARefusedMoveChangesNothing) {
  ibv_qp *one = make_qp(cq_), *other = make_qp(cq_);
  for (auto [first, second] : {std::pair{one, other}, std::pair{other, one}}) {
    connect(first, second->qp_num);
    ibv_qp_attr attr{}, before{}, after{};
    ibv_qp_init_attr init;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    EXPECT_EQ(ibv_modify_qp(first, &attr, IBV_QP_ACCESS_FLAGS), 0);
    EXPECT_EQ(ibv_query_qp(first, &before, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(before.qp_access_flags, unsigned{IBV_ACCESS_REMOTE_READ});
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(first, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              EINVAL);
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = gid_;
    attr.dest_qp_num = second->qp_num;
    EXPECT_EQ(
        ibv_modify_qp(first, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS),
        EINVAL);
    EXPECT_EQ(ibv_query_qp(first, &after, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(after.qp_access_flags, before.qp_access_flags);
    EXPECT_EQ(after.qp_state, IBV_QPS_RTS);
    // It still waits for its peer.
    connect(second, first->qp_num);
    pass(first, second, "there");
    for (ibv_qp* qp : {first, second}) {
      attr.qp_state = IBV_QPS_RESET;
      EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
      EXPECT_EQ(ibv_query_qp(qp, &after, IBV_QP_STATE, &init), 0);
      EXPECT_EQ(after.qp_access_flags, 0u);
    }
  }
  EXPECT_EQ(ibv_destroy_qp(one), 0);
  EXPECT_EQ(ibv_destroy_qp(other), 0);
}

// Posting is refused, flushed or forgotten, depending on who comes first.
TEST_F(Numbered, RESETBesideThreadsThatPost) {
  constexpr int kRounds = 100;
  ibv_qp *one = make_qp(cq_), *other = make_qp(cq_);
  std::atomic<bool> over{false};
  std::thread sends([&] {
    while (!over) post_send(one, 1, at(0));
  });
  std::thread receives([&] {
    while (!over) post_recv(one, 2, at(kPart));
  });
  const auto reset_both = [&] {
    ibv_qp_attr attr{};
    for (ibv_qp* qp : {one, other}) EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    EXPECT_EQ(ibv_poll_cq(cq_, 1, std::array<ibv_wc, 1>().data()), 0);
  };
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    connect(one, other->qp_num);
    connect(other, one->qp_num);
    if (round % 3 == 0) to_error(one);
    reset_both();
  }
  over = true;
  sends.join();
  receives.join();
  reset_both();
  connect(one, other->qp_num);
  connect(other, one->qp_num);
  pass(one, other, "behind all that");
  EXPECT_EQ(ibv_destroy_qp(one), 0);
  EXPECT_EQ(ibv_destroy_qp(other), 0);
}

TEST_F(Numbered, PsnsThatDiffer) {
  ibv_qp *one = make_qp(cq_), *other = make_qp(cq_);
  connect(one, other->qp_num, 0x111111, 0x222222);
  connect(other, one->qp_num, 0x222223, 0x111112);
  for (ibv_qp* qp : {one, other}) {
    EXPECT_EQ(post_send(qp, 1, at(0)), 0);
    expect_completions(cq_, {{1, IBV_WC_RETRY_EXC_ERR}});
  }
  EXPECT_EQ(ibv_destroy_qp(one), 0);
  EXPECT_EQ(ibv_destroy_qp(other), 0);
}

TEST_F(Numbered, OneWithItself) {
  ibv_qp* qp = make_qp(cq_);
  connect(qp, qp->qp_num);
  pass(qp, qp, "to myself");
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// Nobody has that number. Most programs end with the first completion that is no success: it has to
// be the one that says why.
TEST_F(Numbered, TheFirstCompletionSaysWhy) {
  ibv_qp* qp = make_qp(cq_);
  connect(qp, 0xffffff);
  EXPECT_EQ(post_recv(qp, 1, at(kPart)), 0);
  EXPECT_EQ(post_send(qp, 2, at(0)), 0);
  EXPECT_EQ(post_send(qp, 3, at(0)), 0);
  expect_completions(
      cq_, {{2, IBV_WC_RETRY_EXC_ERR}, {3, IBV_WC_WR_FLUSH_ERR}, {1, IBV_WC_WR_FLUSH_ERR}});
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

// The same when the peer's Terminate blames a Read.
TEST_F(Connected, TheFirstCompletionSaysWhy) {
  const Ends ends = connector_->connect(plain());
  ASSERT_EQ(post_recv(ends.a->qp, 1), 0);
  ibv_sge sge{our_address(0), 8, mr_->lkey};
  ibv_send_wr wr{}, *bad;
  wr.wr_id = 2;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma = {.remote_addr = their_address(kSize), .rkey = peer_mr_->rkey};
  ASSERT_EQ(ibv_post_send(ends.a->qp, &wr, &bad), 0);
  expect_completions(cq_, {{2, IBV_WC_REM_ACCESS_ERR}, {1, IBV_WC_WR_FLUSH_ERR}});
}

}  // namespace
}  // namespace uiw::provider_test
