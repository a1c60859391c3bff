// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The states of a UD queue pair, and Q_Keys.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/explain.h"

namespace uiw::datagram {

// Whether ibv_modify_qp may ask for that: 0, or EINVAL, which is what queue/attribute_masks.h has
// of it, or a value that no device of ours has (port, P_Key index).
int check_modify(core::Told& told, ibv_qp_state now, const ibv_qp_attr& attr, int mask);

inline bool can_receive(ibv_qp_state state) {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS;
}

// In ERR they are flushed.
inline bool takes_sends(ibv_qp_state state) {
  return state == IBV_QPS_RTS || state == IBV_QPS_ERR;
}

// What goes on the wire for the Q_Key of a work request: with its most significant bit set it is a
// controlled one, in whose place goes the queue pair's own (InfiniBand 10.2.5).
constexpr uint32_t qkey_to_send(uint32_t wanted, uint32_t own) {
  return wanted >> 31 ? own : wanted;
}

}  // namespace uiw::datagram
