// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which attributes ibv_modify_qp requires and accepts in each state transition: InfiniBand
// Architecture Specification volume 1, 11.2.5.2, as the kernel's verbs check it for all adapters.
// Pure, except for the log.
#pragma once

#include <infiniband/verbs.h>

#include "core/explain.h"

namespace uiw::queue {

// 0, or EINVAL with a message that says what to do: the transition does not exist, an attribute is
// missing, or queue pairs of this type do not have an attribute there. `from` and `to` must be
// valid states; without IBV_QP_STATE `to` is `from`. Types without a table are not checked. For RC
// any mask is accepted, since on iWARP connection set-up moves the queue pair, whatever attributes
// the program passes.
int check_mask(core::Told& told, ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace uiw::queue
