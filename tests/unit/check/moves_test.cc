// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/moves.h"

#include <gmock/gmock.h>

#include <cstring>

namespace uiw::check {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

class AMove : public testing::Test {
 protected:
  AMove() {
    attr_.dest_qp_num = 17;
    attr_.max_rd_atomic = 1;
  }
  // The sentences of what was found.
  std::vector<std::string> to(ibv_qp_state state, int mask) {
    attr_.qp_state = state;
    std::vector<std::string> said;
    found_ = moves_.made(attr_, mask, Stack({.frames = {++calls_}, .count = 1}));
    for (const MoveFault& each : found_) said.push_back(each.fault.what);
    return said;
  }
  std::vector<std::string> to_rts(int init, int rtr, int rts) {
    std::vector<std::string> all;
    for (const auto& [state, mask] :
         {std::pair{IBV_QPS_INIT, init}, std::pair{IBV_QPS_RTR, rtr}, std::pair{IBV_QPS_RTS, rts}})
      for (const std::string& each : to(state, mask)) all.push_back(each);
    return all;
  }
  ibv_qp_attr attr_{};
  Moves moves_;
  std::vector<MoveFault> found_;
  uintptr_t calls_ = 0;
};

TEST_F(AMove, WithAllOfItsAttributesIsRight) {
  EXPECT_TRUE(to_rts(kInit, kRtr, kRts).empty());
  EXPECT_TRUE(to(IBV_QPS_RTS, IBV_QP_STATE).empty());
  EXPECT_TRUE(to(IBV_QPS_ERR, IBV_QP_STATE).empty());
}

TEST_F(AMove, ToRtrTellsOfAReceiveBeforeInit) {
  Stack posted{};
  moves_.receive_taken(posted);
  EXPECT_TRUE(to(IBV_QPS_INIT, kInit).empty());
  moves_.receive_taken(posted);
  EXPECT_THAT(to(IBV_QPS_RTR, kRtr), testing::ElementsAre(HasSubstr("before the queue pair was")));
  EXPECT_EQ(found_[0].called, posted);
  EXPECT_EQ(found_[0].fault.kind, Kind::kWrongState);
  // From there on nothing is early.
  to(IBV_QPS_RESET, IBV_QP_STATE);
  EXPECT_TRUE(to_rts(kInit, kRtr, kRts).empty());
}

TEST_F(AMove, NamesEachAttributeThatIsMissing) {
  for (const int missing : {IBV_QP_PATH_MTU, IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC,
                            IBV_QP_MIN_RNR_TIMER, IBV_QP_AV}) {
    to(IBV_QPS_RESET, IBV_QP_STATE);
    EXPECT_THAT(to_rts(kInit, kRtr & ~missing, kRts),
                testing::ElementsAre("ibv_modify_qp from INIT to RTR without " +
                                     attributes_of(missing) + " in attr_mask"));
  }
  for (const int missing : {IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN,
                            IBV_QP_MAX_QP_RD_ATOMIC}) {
    to(IBV_QPS_RESET, IBV_QP_STATE);
    EXPECT_THAT(to_rts(kInit, kRtr, kRts & ~missing),
                testing::ElementsAre("ibv_modify_qp from RTR to RTS without " +
                                     attributes_of(missing) + " in attr_mask"));
  }
}

TEST_F(AMove, ToInitIsJudgedWhenThePeerIsNamed) {
  EXPECT_TRUE(to(IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PORT).empty());
  EXPECT_THAT(to(IBV_QPS_RTR, kRtr),
              testing::ElementsAre(HasSubstr("from RESET to INIT without IBV_QP_ACCESS_FLAGS, "
                                             "IBV_QP_PKEY_INDEX in")));
  EXPECT_EQ(found_[0].called.calls().frames[0], 1u);
}

TEST_F(AMove, FromInitToInitNeedsNothing) {
  EXPECT_TRUE(to(IBV_QPS_INIT, kInit).empty());
  EXPECT_TRUE(to(IBV_QPS_INIT, IBV_QP_STATE).empty());
  EXPECT_TRUE(to(IBV_QPS_RTR, kRtr).empty());
}

TEST_F(AMove, ToRtrComesAfterInit) {
  EXPECT_THAT(to(IBV_QPS_RTR, kRtr), testing::ElementsAre(EndsWith("never moved to INIT")));
}

TEST_F(AMove, OfRdmaCmIsNotJudged) {
  // As the kernel gives them for iWARP.
  EXPECT_TRUE(
      to_rts(IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_STATE)
          .empty());
  to(IBV_QPS_RESET, IBV_QP_STATE);
  attr_.dest_qp_num = 1;
  EXPECT_TRUE(to_rts(IBV_QP_STATE, IBV_QP_STATE | IBV_QP_DEST_QPN, IBV_QP_STATE).empty());
}

TEST_F(AMove, ToResetBeginsAnew) {
  to_rts(IBV_QP_STATE, kRtr, kRts);
  to(IBV_QPS_RESET, IBV_QP_STATE);
  EXPECT_TRUE(to_rts(kInit, kRtr, kRts).empty());
}

ibv_send_wr request(ibv_wr_opcode opcode) {
  ibv_send_wr wr{};
  wr.opcode = opcode;
  return wr;
}

TEST_F(AMove, WithoutDepthLeavesNoneForReads) {
  attr_.max_rd_atomic = 0;
  attr_.max_dest_rd_atomic = 3;
  to_rts(kInit, kRtr, kRts);
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    const auto fault = moves_.no_depth_for(request(opcode));
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->kind, Kind::kReadDepth);
    EXPECT_THAT(fault->what, HasSubstr("max_rd_atomic 0"));
    EXPECT_THAT(fault->what, EndsWith("is 3"));
  }
  EXPECT_FALSE(moves_.no_depth_for(request(IBV_WR_SEND)));
  EXPECT_FALSE(moves_.no_depth_for(request(IBV_WR_RDMA_WRITE)));
  attr_.max_rd_atomic = 1;
  to(IBV_QPS_RTS, IBV_QP_MAX_QP_RD_ATOMIC);
  EXPECT_FALSE(moves_.no_depth_for(request(IBV_WR_RDMA_READ)));
}

TEST_F(AMove, ThatDoesNotSayTheDepthIsToldThatOnly) {
  to_rts(kInit, kRtr, kRts & ~IBV_QP_MAX_QP_RD_ATOMIC);
  EXPECT_FALSE(moves_.no_depth_for(request(IBV_WR_RDMA_READ)));
}

}  // namespace
}  // namespace uiw::check
