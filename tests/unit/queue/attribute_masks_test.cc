// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/attribute_masks.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <string>

namespace uiw::queue {
namespace {

constexpr int kAll = 2 * IBV_QP_RATE_LIMIT - 1;

int check(ibv_qp_state from, ibv_qp_state to, int mask, std::string* said = nullptr) {
  core::Told told;
  core::forget_explained();
  testing::internal::CaptureStderr();
  const int error = check_mask(told, IBV_QPT_UC, from, to, mask);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(error != 0, !text.empty());
  if (said) *said = text;
  return error;
}

struct Way {
  ibv_qp_state from, to;
  int needed, may;
};

// As in the specification's table, and as ibv_uc_pingpong and perftest do it.
constexpr Way kWays[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_RESET, 0, 0},
    {IBV_QPS_INIT, IBV_QPS_ERR, 0, 0},
};

TEST(AttributeMasks, EachAttributeThatIsNeededMayNotBeMissingAndNoOtherMayBeThere) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(std::to_string(way.from) + " to " + std::to_string(way.to));
    EXPECT_EQ(check(way.from, way.to, IBV_QP_STATE | way.needed), 0);
    EXPECT_EQ(check(way.from, way.to, IBV_QP_STATE | way.needed | way.may), 0);
    for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
      SCOPED_TRACE(bit);
      const int expected = way.needed & bit ? EINVAL : 0;
      EXPECT_EQ(check(way.from, way.to, (IBV_QP_STATE | way.needed) & ~bit), expected);
      if ((way.needed | way.may) & bit) continue;
      EXPECT_EQ(check(way.from, way.to, IBV_QP_STATE | way.needed | bit), EINVAL);
    }
  }
}

TEST(AttributeMasks, WhatIsWrongIsSaid) {
  std::string said;
  check(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
        &said);
  EXPECT_THAT(said,
              testing::HasSubstr("UC queue pair from INIT to RTR: IBV_QP_PATH_MTU is missing"));
  check(IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT, &said);
  EXPECT_THAT(said, testing::HasSubstr("leave out IBV_QP_TIMEOUT"));
  check(IBV_QPS_RESET, IBV_QPS_RTS, IBV_QP_STATE, &said);
  EXPECT_THAT(said, testing::HasSubstr("does not go from RESET to RTS"));
}

TEST(AttributeMasks, StatesThatNobodyAsksFor) {
  EXPECT_EQ(check(IBV_QPS_RTS, IBV_QPS_SQE, IBV_QP_STATE), EINVAL);
}

TEST(AttributeMasks, OfRcNothingIsChecked) {
  core::Told told;
  for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR})
    for (const int mask : {0, int{IBV_QP_STATE}, kAll})
      EXPECT_EQ(check_mask(told, IBV_QPT_RC, IBV_QPS_INIT, to, mask), 0);
}

}  // namespace
}  // namespace uiw::queue
