// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program is told at the default log level of what it does wrong, and the vendor_err of the
// completions that fail by it.
#include <gmock/gmock.h>

#include "connected.h"

namespace uiw::provider_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Explained : public Connected {
 protected:
  Ends connect() {
    const Ends ends = connector_->connect(plain());
    EXPECT_TRUE(ends.b);
    return ends;
  }
  void listen() { testing::internal::CaptureStderr(); }
  std::string said() { return testing::internal::GetCapturedStderr(); }

  // By one end, signalled unless said otherwise.
  int post(const Ends& ends, ibv_wr_opcode opcode, uint64_t wr_id, ibv_sge sge, uint64_t remote = 0,
           uint32_t rkey = 0, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{}, *bad;
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    return ibv_post_send(ends.a->qp, &wr, &bad);
  }
  // The queue pair has gone to ERR, and everything that is said of it has been.
  void await_error(ibv_qp* qp) {
    EXPECT_TRUE(wait_until([&] { return state_of(qp) == IBV_QPS_ERR; }));
    // The engine that ends the connection has said what there was before it raised this.
    ibv_async_event event = next_async_event();
    ibv_ack_async_event(&event);
  }
};

TEST_F(Explained, InlineDataBeyondWhatTheQueuePairHasOnce) {
  const Ends ends = connect();
  listen();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(post(ends, IBV_WR_SEND, 7, {our_address(0), 2000, mr_->lkey}, 0, 0, IBV_SEND_INLINE),
              EINVAL);
  const std::string text = said();
  EXPECT_THAT(text,
              AllOf(HasSubstr("wr_id 0x7: 2000 bytes inline, max_inline_data of the queue pair "
                              "is 512"),
                    HasSubstr("ibv_post_send: queue pair 0x")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(Explained, AFullSendQueueByHowManyRequestsAreNotSignalled) {
  const Ends ends = connect(), silent = connect();
  listen();
  for (uint64_t i = 0; i < 16; ++i)
    EXPECT_EQ(post(ends, IBV_WR_RDMA_WRITE, i, {our_address(0), 8, mr_->lkey}, their_address(0),
                   peer_mr_->rkey, i == 3 ? IBV_SEND_SIGNALED : 0),
              0);
  EXPECT_EQ(write(ends.a->qp, 16), ENOMEM);
  EXPECT_THAT(said(),
              HasSubstr("wr_id 0x10: the send queue is full: all 16 places (max_send_wr) are "
                        "taken, 15 of them by requests that are not signalled, "));
  listen();
  for (uint64_t i = 0; i < 16; ++i)
    EXPECT_EQ(post(silent, IBV_WR_RDMA_WRITE, i, {our_address(0), 8, mr_->lkey}, their_address(0),
                   peer_mr_->rkey, 0),
              0);
  EXPECT_EQ(write(silent.a->qp, 16), ENOMEM);
  EXPECT_THAT(said(), HasSubstr("the send queue is full for good"));
}

// On a context of its own: what could not be made is said once of that.
TEST_F(Verbs, LimitsOfWhatIsMadeAreExplained) {
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  testing::internal::CaptureStderr();
  ibv_qp_init_attr init = qp_attr(cq);
  init.cap.max_inline_data = 4000;
  EXPECT_NULL_ERRNO(ibv_create_qp(pd_, &init), EINVAL);
  EXPECT_NULL_ERRNO(ibv_create_cq(context_, 0, nullptr, nullptr, 0), EINVAL);
  ibv_srq_init_attr srq{nullptr, {1u << 30, 1, 0}};
  EXPECT_NULL_ERRNO(ibv_create_srq(pd_, &srq), EINVAL);
  char memory[64];
  EXPECT_NULL_ERRNO((ibv_reg_mr)(pd_, memory, 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
  EXPECT_NULL_ERRNO((ibv_reg_mr)(pd_, memory, 0, 0), EINVAL);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("ibv_create_qp: max_inline_data is 4000, the limit is 1024"),
                    HasSubstr("ibv_create_cq: cqe is 0, it has to be from 1 to 4194304"),
                    HasSubstr("ibv_create_srq: max_wr is 1073741824"),
                    HasSubstr("need IBV_ACCESS_LOCAL_WRITE besides"),
                    HasSubstr("ibv_reg_mr: length is 0")));
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// Who asks for more and more, to find out how much there is, makes no mistake.
TEST_F(Verbs, FindingOutHowMuchInlineDataThereIsIsNotSpokenOf) {
  ibv_cq* cq = ibv_create_cq(context_, 4, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  testing::internal::CaptureStderr();
  ibv_qp_init_attr init = qp_attr(cq);
  for (init.cap.max_inline_data = 1;; init.cap.max_inline_data *= 2) {
    ibv_qp* qp = ibv_create_qp(pd_, &init);
    if (!qp) break;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(Explained, StatesThatForbidACall) {
  ibv_qp_init_attr init = init_attr(false);
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  listen();
  EXPECT_EQ(write(qp, 1), EINVAL);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
  EXPECT_THAT(said(), AllOf(HasSubstr("is in INIT and has no peer"),
                            HasSubstr("does not go from INIT to RTS before its peer is named")));
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_F(Explained, AnSgeOutsideItsRegionByHowMuch) {
  const Ends ends = connect();
  ASSERT_EQ(post_recv(ends.a->qp, 5), 0);
  listen();
  ASSERT_EQ(post(ends, IBV_WR_SEND, 8, {our_address(kSize - 96), 200, mr_->lkey}), 0);
  const ibv_wc failed = wait_for(cq_);
  EXPECT_EQ(failed.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(failed.vendor_err, 0x15u);
  // What is flushed by it says the same cause.
  const ibv_wc flushed = wait_for(cq_);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.vendor_err, 0x15u);
  EXPECT_THAT(said(), AllOf(HasSubstr("wr_id 0x8 (SEND): SGE 0 (lkey 0x"),
                            HasSubstr("200 bytes) is not memory that it may use: it ends 104 bytes "
                                      "behind the region, which has 65536 bytes from 0x")));
  ibv_async_event event = next_async_event();
  ibv_ack_async_event(&event);
  await_error(ends.b->qp);
}

TEST_F(Explained, AKeyThatWasDeregisteredAndOneOfAnotherDomain) {
  ibv_pd* other = ibv_alloc_pd(context_);
  ibv_mr* foreign = (ibv_reg_mr)(other, ours_, 64, 0);
  ibv_mr* gone = (ibv_reg_mr)(pd_, ours_, 64, 0);
  ASSERT_TRUE(foreign && gone);
  const uint32_t stale = gone->lkey;
  EXPECT_EQ(ibv_dereg_mr(gone), 0);
  const Ends first = connect(), second = connect();
  listen();
  ASSERT_EQ(post(first, IBV_WR_SEND, 1, {our_address(0), 8, stale}), 0);
  EXPECT_EQ(wait_for(cq_).vendor_err, 0x11u);
  ASSERT_EQ(post(second, IBV_WR_SEND, 2, {our_address(0), 8, foreign->lkey}), 0);
  EXPECT_EQ(wait_for(cq_).vendor_err, 0x12u);
  EXPECT_THAT(said(), AllOf(HasSubstr("the region was deregistered (ibv_dereg_mr) before; the "
                                      "nearest region of this protection domain is lkey 0x"),
                            HasSubstr("belongs to another protection domain")));
  for (int i = 0; i < 4; ++i) {
    ibv_async_event event = next_async_event();
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(ibv_dereg_mr(foreign), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Explained, AReceiveThatIsTooShortByBothLengths) {
  const Ends ends = connect();
  receive(ends.b->qp, 115, 0, 100);
  listen();
  ASSERT_EQ(post(ends, IBV_WR_SEND, 15, {our_address(0), 200, mr_->lkey}), 0);
  const ibv_wc short_one = wait_for(peer_cq_);
  EXPECT_EQ(short_one.status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(short_one.vendor_err, 0x20u);
  await_error(ends.b->qp);
  EXPECT_THAT(said(),
              HasSubstr("wr_id 0x73: the receive has 100 bytes, and the peer's message has 200"));
}

TEST_F(Explained, ARefusedReadAtBothEnds) {
  ibv_mr* bare = (ibv_reg_mr)(pd_, theirs_, 64, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(bare, nullptr);
  const Ends ends = connect();
  listen();
  ASSERT_EQ(post(ends, IBV_WR_RDMA_READ, 17, {our_address(0), 32, mr_->lkey}, their_address(0),
                 bare->rkey),
            0);
  const ibv_wc refused = wait_for(cq_);
  EXPECT_EQ(refused.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(refused.vendor_err, 0x10102u);
  await_error(ends.b->qp);
  const std::string text = said();
  EXPECT_THAT(text, HasSubstr("refused an RDMA Read of the peer (rkey 0x"));
  EXPECT_THAT(text, HasSubstr("32 bytes): the region (64 bytes from 0x"));
  EXPECT_THAT(text, HasSubstr("was registered without IBV_ACCESS_REMOTE_READ"));
  EXPECT_THAT(text, HasSubstr("the peer refused wr_id 0x11 (IBV_WR_RDMA_READ, 32 bytes, rkey 0x"));
  EXPECT_THAT(text, HasSubstr("Terminate 0x0102, RDMAP: remote protection error"));
  EXPECT_EQ(ibv_dereg_mr(bare), 0);
}

TEST_F(Explained, ARefusedWriteWithTheNearestRegion) {
  const Ends ends = connect();
  listen();
  ASSERT_EQ(post(ends, IBV_WR_RDMA_WRITE, 14, {our_address(0), 8, mr_->lkey}, their_address(0),
                 0x00000142, 0),
            0);
  await_error(ends.b->qp);
  await_error(ends.a->qp);
  const std::string text = said();
  EXPECT_THAT(text, HasSubstr("refused an RDMA Write of the peer (rkey 0x00000142"));
  EXPECT_THAT(text,
              HasSubstr("no memory region has this key; the nearest region of this protection "
                        "domain is rkey 0x"));
  EXPECT_THAT(text, HasSubstr("Terminate 0x1100, DDP: tagged message with an invalid STag"));
}

TEST_F(Explained, TheSizeOfAQueueThatOverflows) {
  ibv_cq* small = ibv_create_cq(context_, 2, nullptr, nullptr, 0);
  ASSERT_NE(small, nullptr);
  ibv_qp_init_attr init = init_attr(false);
  init.send_cq = init.recv_cq = small;
  ibv_qp* qp = ibv_create_qp(pd_, &init);
  ASSERT_NE(qp, nullptr);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(post_recv(qp, i), 0);
  listen();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  EXPECT_THAT(said(), HasSubstr("a completion queue of 2 entries has overflowed"));
  const ibv_wc flushed = wait_for(small);
  EXPECT_EQ(flushed.vendor_err, 0x42u);
  ibv_async_event event = next_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(small), 0);
}

TEST_F(Explained, WhatGoesWellIsNotSpokenOf) {
  listen();
  const Ends ends = connect();
  receive(ends.b->qp, 1, 0, 64);
  ASSERT_EQ(post(ends, IBV_WR_SEND, 1, {our_address(0), 64, mr_->lkey}), 0);
  ASSERT_EQ(post(ends, IBV_WR_RDMA_READ, 2, {our_address(0), 64, mr_->lkey}, their_address(0),
                 peer_mr_->rkey),
            0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(wait_for(cq_).status, IBV_WC_SUCCESS);
  EXPECT_EQ(wait_for(peer_cq_).status, IBV_WC_SUCCESS);
  connector_->disconnect(ends);
  EXPECT_EQ(said(), "");
}

}  // namespace
}  // namespace uiw::provider_test
