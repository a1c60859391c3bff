// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The table of --faults in front of a stack of which the test says when it completes what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include <thread>
#include <vector>

#include "core/cause.h"
#include "core/qp_number.h"
#include "faults/instrument.h"
#include "faults/objects.h"
#include "unit/faults/faulty.h"

namespace uiw::faults {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(FaultyVerbs, ARequestFailsBehindThoseBeforeItAndWhatFollowsFlushes) {
  begin("op=READ nth=1 status=RETRY_EXC_ERR");
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(post(request(2, IBV_WR_RDMA_READ, 0)), 0);
  EXPECT_EQ(post(request(3, IBV_WR_SEND, 0)), 0);
  EXPECT_EQ(post(request(4, IBV_WR_RDMA_READ)), 0);
  // Nothing is carried out of what fails or flushes.
  EXPECT_THAT(behind_qp_->seen, ElementsAre(IBV_WR_SEND, IBV_WR_RDMA_WRITE));
  EXPECT_THAT(poll(sends_), IsEmpty());
  EXPECT_EQ(fake::state_of(*behind_qp_), IBV_QPS_RTS);
  fake::complete_sends(*behind_qp_);
  const std::vector<ibv_wc> all = poll_all(sends_);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(all[1].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(all[1].wr_id, 2u);
  EXPECT_EQ(all[1].vendor_err, static_cast<uint32_t>(core::Cause::kInjected));
  EXPECT_EQ(all[1].opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(all[2].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(all[2].wr_id, 3u);
  EXPECT_EQ(all[3].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(all[3].wr_id, 4u);
  EXPECT_EQ(all[3].opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(fake::state_of(*behind_qp_), IBV_QPS_ERR);
  // From then on the stack flushes by itself.
  EXPECT_EQ(post(request(5)), 0);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(5, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(FaultyVerbs, AQueuePairThatFailsGoesToErrThoughNobodyPolls) {
  begin("op=SEND nth=1 status=RETRY_EXC_ERR");
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(post(request(2)), 0);
  fake::complete_sends(*behind_qp_);
  const time_t limit = time(nullptr) + 60;
  while (fake::state_of(*behind_qp_) != IBV_QPS_ERR && time(nullptr) < limit)
    std::this_thread::yield();
  EXPECT_EQ(fake::state_of(*behind_qp_), IBV_QPS_ERR);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_RETRY_EXC_ERR), Completion(2, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(FaultyVerbs, OneOfAListFailsAndABadOneIsNamed) {
  begin("op=SEND nth=2 status=REM_OP_ERR");
  ibv_send_wr list[] = {request(1), request(2), request(3)};
  list[0].next = &list[1];
  list[1].next = &list[2];
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(verbs_->qp_post_send(qp_, list, &bad), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_REM_OP_ERR),
                          Completion(3, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(FaultyVerbs, WhatTheStackRefusesIsNamedAndHasNoCompletion) {
  begin("op=WRITE nth=1 status=REM_OP_ERR");
  ibv_send_wr list[] = {request(1), request(2)};
  list[0].next = &list[1];
  list[1].num_sge = 2;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(verbs_->qp_post_send(qp_, list, &bad), EINVAL);
  EXPECT_EQ(bad, &list[1]);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(1, IBV_WC_SUCCESS)));
}

TEST_F(FaultyVerbs, NoMoreIsHeldThanTheQueueHasRoomFor) {
  begin("op=SEND nth=1 status=RETRY_EXC_ERR", 2);
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(post(request(2)), 0);
  EXPECT_EQ(post(request(3)), 0);
  EXPECT_EQ(post(request(4)), ENOMEM);
}

TEST_F(FaultyVerbs, ABatchThatIsGivenUpHasNotFailed) {
  begin("op=SEND nth=2 status=RETRY_EXC_ERR");
  const ibv_send_wr first = request(1), second = request(2), third = request(3);
  verbs_->qp_batch_begin(qp_);
  EXPECT_EQ(verbs_->qp_batch_add(qp_, &first), 0);
  EXPECT_EQ(verbs_->qp_batch_add(qp_, &second), 0);
  EXPECT_EQ(verbs_->qp_batch_end(qp_, 0), 0);
  verbs_->qp_batch_begin(qp_);
  EXPECT_EQ(verbs_->qp_batch_add(qp_, &third), 0);
  EXPECT_EQ(verbs_->qp_batch_end(qp_, 1), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(3, IBV_WC_SUCCESS)));
}

TEST_F(FaultyVerbs, ABatchFailsAsAListDoes) {
  begin("op=SEND nth=2 status=RETRY_EXC_ERR");
  verbs_->qp_batch_begin(qp_);
  for (uint64_t i = 1; i <= 3; ++i) {
    const ibv_send_wr wr = request(i);
    EXPECT_EQ(verbs_->qp_batch_add(qp_, &wr), 0);
  }
  EXPECT_EQ(verbs_->qp_batch_end(qp_, 1), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_RETRY_EXC_ERR),
                          Completion(3, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(FaultyVerbs, AReceiveFailsWhenItsMessageHasComeAndThoseBehindItFlush) {
  begin("op=RECV nth=2 status=LOC_LEN_ERR");
  for (uint64_t i = 1; i <= 3; ++i) fake::receive(*behind_qp_, i);
  EXPECT_EQ(post(request(7)), 0);
  EXPECT_THAT(poll(receives_),
              ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_LOC_LEN_ERR),
                          Completion(3, IBV_WC_WR_FLUSH_ERR)));
  EXPECT_EQ(fake::state_of(*behind_qp_), IBV_QPS_ERR);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(7, IBV_WC_WR_FLUSH_ERR)));
}

TEST_F(FaultyVerbs, ADelayedCompletionKeepsThoseBehindItAndTheirOrder) {
  begin("op=SEND nth=2 delay=50ms");
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(post(request(i)), 0);
  fake::complete_sends(*behind_qp_);
  const core::Nanoseconds start = core::now();
  std::vector<Completion> all;
  while (all.size() < 3 && core::now() < start + 60 * core::kSecond) {
    for (const Completion& each : poll(sends_)) all.push_back(each);
    if (core::now() < start + 50 * core::kMillisecond) {
      EXPECT_LE(all.size(), 1u);
    }
  }
  EXPECT_GE(core::now(), start + 50 * core::kMillisecond);
  EXPECT_THAT(all, ElementsAre(Completion(1, IBV_WC_SUCCESS), Completion(2, IBV_WC_SUCCESS),
                               Completion(3, IBV_WC_SUCCESS)));
}

TEST_F(FaultyVerbs, WhoArmsFindsWhatWasDelayed) {
  begin("op=RECV nth=1 delay=20ms");
  fake::receive(*behind_qp_, 1);
  EXPECT_THAT(poll(receives_), IsEmpty());
  EXPECT_EQ(verbs_->cq_arm(receives_, 0), 0);
  EXPECT_THAT(poll(receives_), ElementsAre(Completion(1, IBV_WC_SUCCESS)));
}

TEST_F(FaultyVerbs, AQueuePairThatGoesToResetBeginsAnew) {
  begin("op=SEND nth=1 status=RETRY_EXC_ERR");
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(post(request(2)), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(post(request(3)), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_), ElementsAre(Completion(3, IBV_WC_SUCCESS)));
}

TEST_F(FaultyVerbs, CompletionsOfADestroyedQueuePairAreNotHandedOut) {
  begin("op=RECV delay=60s");
  uiwarp_qp* const other = make_qp();
  fake::receive(fake::of(of(other).next), 1);
  EXPECT_THAT(poll(receives_), IsEmpty());
  uint32_t events;
  EXPECT_EQ(verbs_->qp_destroy(other, &events), 0);
  EXPECT_TRUE(of(receives_)->withheld.empty());
}

TEST_F(FaultyVerbs, CallsFailWithTheErrnoAndAreCountedPerObject) {
  begin(
      "verb=alloc_pd errno=ENOMEM\n"
      "verb=post_send nth=2 errno=EINVAL\n"
      "verb=modify_qp nth=1 errno=EIO\n"
      "verb=poll_cq nth=2 errno=EAGAIN\n"
      "verb=req_notify_cq nth=1 errno=EBUSY\n"
      "verb=post_recv nth=1 errno=ENOSPC\n");
  uiwarp_pd* pd = nullptr;
  EXPECT_EQ(verbs_->pd_alloc(nullptr, &pd), ENOMEM);
  EXPECT_EQ(post(request(1)), 0);
  ibv_send_wr wr = request(2), *bad = nullptr;
  EXPECT_EQ(verbs_->qp_post_send(qp_, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(behind_qp_->seen.size(), 1u);
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  EXPECT_EQ(verbs_->qp_post_recv(qp_, &receive, &bad_receive), ENOSPC);
  EXPECT_EQ(bad_receive, &receive);
  EXPECT_EQ(verbs_->qp_post_recv(qp_, &receive, &bad_receive), 0);
  uiwarp_qp* const other = make_qp();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE), EIO);
  EXPECT_EQ(fake::state_of(*behind_qp_), IBV_QPS_RTS);
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE), 0);
  EXPECT_EQ(verbs_->qp_modify(other, &attr, IBV_QP_STATE), EIO);
  uint32_t events;
  EXPECT_EQ(verbs_->qp_destroy(other, &events), 0);
  ibv_wc wc;
  EXPECT_EQ(verbs_->cq_poll(receives_, 1, &wc), 0);
  EXPECT_EQ(verbs_->cq_poll(receives_, 1, &wc), -EAGAIN);
  EXPECT_EQ(verbs_->cq_poll(receives_, 1, &wc), 0);
  const int arms = fake::arms;
  EXPECT_EQ(verbs_->cq_arm(receives_, 0), EBUSY);
  EXPECT_EQ(fake::arms, arms);
}

TEST_F(FaultyVerbs, AConnectionMeetsItsRuleByPortAndCount) {
  begin(
      "connect port=7 nth=2 reject\nconnect port=8 timeout\nconnect port=9 unreachable\n"
      "connect port=10 reset");
  EXPECT_EQ(verbs_->cm_connecting(7, 1), UIWARP_CONNECT_GOES_ON);
  EXPECT_EQ(verbs_->cm_connecting(8, 1), UIWARP_CONNECT_UNANSWERED);
  EXPECT_EQ(verbs_->cm_connecting(7, 1), UIWARP_CONNECT_REJECTED);
  EXPECT_EQ(verbs_->cm_connecting(9, 1), UIWARP_CONNECT_UNREACHABLE);
  EXPECT_EQ(verbs_->cm_connecting(10, 0), UIWARP_CONNECT_GOES_ON);
}

TEST_F(FaultyVerbs, AConnectionIsResetWithTheRequestBeyondItsBytes) {
  begin("connect port=7 reset after=100");
  EXPECT_EQ(verbs_->cm_connecting(7, of(qp_).number), UIWARP_CONNECT_GOES_ON);
  ibv_sge sge{0, 60, 0};
  for (uint64_t i = 1; i <= 3; ++i) {
    ibv_send_wr wr = request(i);
    if (i == 2) wr.num_sge = 0;  // of no bytes
    if (i != 2) wr.num_sge = 1, wr.sg_list = &sge;
    EXPECT_EQ(post(wr), 0);
  }
  EXPECT_EQ(post(request(4)), 0);
  EXPECT_EQ(behind_qp_->breaks, 0);
  fake::complete_sends(*behind_qp_);
  const std::vector<ibv_wc> all = poll_all(sends_);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].status, IBV_WC_SUCCESS);
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(all[i].wr_id, i + 1);
    EXPECT_EQ(all[i].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(all[i].vendor_err, static_cast<uint32_t>(core::Cause::kInjected));
  }
  EXPECT_EQ(behind_qp_->breaks, 1);
}

TEST_F(FaultyVerbs, AListThatNobodyReadsCarriesNothing) {
  begin("connect port=7 reset after=100");
  EXPECT_EQ(verbs_->cm_connecting(7, of(qp_).number), UIWARP_CONNECT_GOES_ON);
  ibv_send_wr wr = request(1, IBV_WR_LOCAL_INV);
  wr.num_sge = 3;  // of no list
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(of(qp_).doom->carried, 0u);
}

TEST_F(FaultyVerbs, AConnectionByNumberFailsWithItsFirstRequest) {
  begin("connect nth=1 unreachable");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.dest_qp_num = core::kCmQpNumber;  // rdma_cm has found it
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN), 0);
  EXPECT_FALSE(of(qp_).doom);
  attr.dest_qp_num = 0x123456;
  attr.ah_attr.grh.dgid.raw[15] = 9;
  EXPECT_EQ(verbs_->qp_modify(qp_, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN), 0);
  EXPECT_EQ(of(qp_).peer.s6_addr[15], 9);
  EXPECT_EQ(post(request(1)), 0);
  EXPECT_EQ(post(request(2)), 0);
  fake::complete_sends(*behind_qp_);
  EXPECT_THAT(poll(sends_),
              ElementsAre(Completion(1, IBV_WC_RETRY_EXC_ERR), Completion(2, IBV_WC_WR_FLUSH_ERR)));
  EXPECT_EQ(behind_qp_->breaks, 0);
}

TEST_F(FaultyVerbs, AFileWithAWrongRuleGivesNoTable) {
  EXPECT_EQ(make_table("/nonexistent/rules", &behind_, &verbs_), EINVAL);
  EXPECT_EQ(verbs_, nullptr);
}

}  // namespace
}  // namespace uiw::faults
