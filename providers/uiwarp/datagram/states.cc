// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/states.h"

#include <cerrno>

namespace uiw::datagram {
namespace {

struct Transition {
  ibv_qp_state from, to;
  int required, optional;
};

constexpr int kIdentity = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kIdentity, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kIdentity},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    // Not in the tables; drivers take it.
    {IBV_QPS_RTR, IBV_QPS_RTR, 0, IBV_QP_QKEY | IBV_QP_CUR_STATE},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY | IBV_QP_CUR_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY | IBV_QP_CUR_STATE},
};

bool are_attributes_of(const Transition& transition, int mask) {
  const int given = mask & ~IBV_QP_STATE;
  return (given & transition.required) == transition.required &&
         (given & ~(transition.required | transition.optional)) == 0;
}

bool may_go(ibv_qp_state now, ibv_qp_state to, int mask) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return (mask & ~IBV_QP_STATE) == 0;
  for (const Transition& transition : kTransitions)
    if (transition.from == now && transition.to == to) return are_attributes_of(transition, mask);
  return false;
}

}  // namespace

int check_modify(ibv_qp_state now, const ibv_qp_attr& attr, int mask) {
  if (!may_go(now, mask & IBV_QP_STATE ? attr.qp_state : now, mask)) return EINVAL;
  if ((mask & IBV_QP_CUR_STATE) && attr.cur_qp_state != now) return EINVAL;
  if ((mask & IBV_QP_PORT) && attr.port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) && attr.pkey_index != 0) return EINVAL;
  return 0;
}

}  // namespace uiw::datagram
