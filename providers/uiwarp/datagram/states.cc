// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/states.h"

#include <cerrno>

#include "core/verbs_names.h"
#include "queue/attribute_masks.h"

namespace uiw::datagram {

int check_modify(core::Told& told, ibv_qp_state now, const ibv_qp_attr& attr, int mask) {
  const ibv_qp_state to = mask & IBV_QP_STATE ? attr.qp_state : now;
  if (const int error = queue::check_mask(told, IBV_QPT_UD, now, to, mask)) return error;
  if ((mask & IBV_QP_CUR_STATE) && attr.cur_qp_state != now)
    return core::refuse(told, EINVAL,
                        "ibv_modify_qp of a UD queue pair: cur_qp_state is %s, but it is in %s",
                        core::name_of(attr.cur_qp_state), core::name_of(now));
  if ((mask & IBV_QP_PORT) && attr.port_num != 1)
    return core::refuse(told, EINVAL,
                        "ibv_modify_qp of a UD queue pair: port_num is %u, the device has port 1",
                        attr.port_num);
  if ((mask & IBV_QP_PKEY_INDEX) && attr.pkey_index != 0)
    return core::refuse(told, EINVAL,
                        "ibv_modify_qp of a UD queue pair: pkey_index is %u, the port has P_Key 0 "
                        "only",
                        attr.pkey_index);
  return 0;
}

}  // namespace uiw::datagram
