// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What ibv_modify_qp may ask of a UD queue pair.
#include "datagram/states.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace uiw::datagram {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                    IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
constexpr int kToInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int kToRts = IBV_QP_STATE | IBV_QP_SQ_PSN;

int modify(ibv_qp_state now, ibv_qp_state to, int mask) {
  core::Told told;
  ibv_qp_attr attr{};
  attr.qp_state = to;
  attr.cur_qp_state = now;
  attr.port_num = 1;
  return check_modify(told, now, attr, mask);
}

TEST(States, LeadToEachOtherSo) {
  for (ibv_qp_state now : kStates) {
    for (ibv_qp_state to : kStates) {
      const bool may =
          to == IBV_QPS_RESET || to == IBV_QPS_ERR ||
          (now == IBV_QPS_RESET && to == IBV_QPS_INIT) ||
          (now == IBV_QPS_INIT && to == IBV_QPS_INIT) ||
          (now == IBV_QPS_INIT && to == IBV_QPS_RTR) || (now == IBV_QPS_RTR && to == IBV_QPS_RTR) ||
          (now == IBV_QPS_RTR && to == IBV_QPS_RTS) || (now == IBV_QPS_RTS && to == IBV_QPS_RTS);
      const bool is_init = now == IBV_QPS_RESET && to == IBV_QPS_INIT;
      const bool is_rts = now == IBV_QPS_RTR && to == IBV_QPS_RTS;
      const int mask = is_init ? kToInit : is_rts ? kToRts : int{IBV_QP_STATE};
      EXPECT_EQ(modify(now, to, mask), may ? 0 : EINVAL) << now << " to " << to;
    }
  }
}

TEST(States, NeedTheirAttributes) {
  for (int missing : {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY})
    EXPECT_EQ(modify(IBV_QPS_RESET, IBV_QPS_INIT, kToInit & ~missing), EINVAL) << missing;
  EXPECT_EQ(modify(IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE), EINVAL);
}

TEST(States, TakeNoOthers) {
  const struct {
    ibv_qp_state now, to;
    int mask, optional;
  } rows[] = {
      {IBV_QPS_RESET, IBV_QPS_INIT, kToInit, 0},
      {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_STATE, kToInit},
      {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
      {IBV_QPS_RTR, IBV_QPS_RTS, kToRts, IBV_QP_QKEY | IBV_QP_CUR_STATE},
      {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_STATE, IBV_QP_QKEY | IBV_QP_CUR_STATE},
      {IBV_QPS_RTS, IBV_QPS_RESET, IBV_QP_STATE, 0},
      {IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_STATE, 0},
  };
  for (const auto& row : rows) {
    for (int bit = 0; bit < 31; ++bit) {
      const int attribute = 1 << bit;
      if (row.mask & attribute) continue;
      EXPECT_EQ(modify(row.now, row.to, row.mask | attribute),
                row.optional & attribute ? 0 : EINVAL)
          << row.now << " to " << row.to << " with " << attribute;
    }
  }
}

TEST(States, TheQkeyChangesWithoutAnyFromInitOn) {
  for (ibv_qp_state now : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
    EXPECT_EQ(modify(now, IBV_QPS_RESET, IBV_QP_QKEY), 0) << now;
  for (ibv_qp_state now : {IBV_QPS_RESET, IBV_QPS_ERR})
    EXPECT_EQ(modify(now, IBV_QPS_RESET, IBV_QP_QKEY), EINVAL) << now;
}

TEST(States, ValuesAreChecked) {
  core::Told told;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  EXPECT_EQ(check_modify(told, IBV_QPS_RESET, attr, kToInit), 0);
  attr.port_num = 2;
  EXPECT_EQ(check_modify(told, IBV_QPS_RESET, attr, kToInit), EINVAL);
  attr.port_num = 1;
  attr.pkey_index = 1;
  EXPECT_EQ(check_modify(told, IBV_QPS_RESET, attr, kToInit), EINVAL);
  attr.qp_state = IBV_QPS_RTS;
  attr.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(check_modify(told, IBV_QPS_RTR, attr, kToRts | IBV_QP_CUR_STATE), EINVAL);
}

TEST(Qkey, AControlledOneIsTheQueuePairs) {
  EXPECT_EQ(qkey_to_send(0x11111111, 0x22222222), 0x11111111u);
  EXPECT_EQ(qkey_to_send(0x7fffffff, 0x22222222), 0x7fffffffu);
  EXPECT_EQ(qkey_to_send(0x80000000, 0x22222222), 0x22222222u);
  EXPECT_EQ(qkey_to_send(0xffffffff, 0xa0000000), 0xa0000000u);
}

}  // namespace
}  // namespace uiw::datagram
