// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which attributes ibv_modify_qp needs, and which it takes, on which way from state to state:
// InfiniBand Architecture Specification volume 1, 11.2.5.2, as the kernel's verbs check it for all
// adapters. Pure, but for the log.
#pragma once

#include <infiniband/verbs.h>

#include "core/explain.h"

namespace uiw::queue {

// 0, or EINVAL, which is explained with what to do: a way that there is not, an attribute that is
// missing, or one that queue pairs of this type do not have there. Both are states (no other
// values); `to` is `from` without IBV_QP_STATE. Of a type without a table nothing is checked: RC
// programs are taken as they come, since on iWARP connection set-up moves the queue pair, whatever
// they give.
int check_mask(core::Told& told, ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace uiw::queue
