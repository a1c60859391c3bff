// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/states.h"

#include <cerrno>

#include "queue/attribute_masks.h"

namespace uiw::datagram {
int check_modify(ibv_qp_state now, const ibv_qp_attr& attr, int mask) {
  const ibv_qp_state to = mask & IBV_QP_STATE ? attr.qp_state : now;
  if (const int error = queue::check_mask(IBV_QPT_UD, now, to, mask)) return error;
  if ((mask & IBV_QP_CUR_STATE) && attr.cur_qp_state != now) return EINVAL;
  if ((mask & IBV_QP_PORT) && attr.port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) && attr.pkey_index != 0) return EINVAL;
  return 0;
}

}  // namespace uiw::datagram
