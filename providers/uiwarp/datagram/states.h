// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The states of a UD queue pair: what ibv_modify_qp may ask for (InfiniBand 11.2.5.2, tables 91 to
// 99), and Q_Keys.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace uiw::datagram {

// 0, or EINVAL: no such transition, an attribute that it needs is missing or one that it does not
// take is there, or a value that no device of ours has (port, P_Key index). SQD is not among the
// states: a send queue that hands each datagram over while it is posted has nothing to drain.
int check_modify(ibv_qp_state now, const ibv_qp_attr& attr, int mask);

inline bool can_receive(ibv_qp_state state) {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS;
}

// What goes on the wire for the Q_Key of a work request: with its most significant bit set it is a
// controlled one, in whose place goes the queue pair's own (InfiniBand 10.2.5).
constexpr uint32_t qkey_to_send(uint32_t wanted, uint32_t own) {
  return wanted >> 31 ? own : wanted;
}

}  // namespace uiw::datagram
