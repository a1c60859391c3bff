// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The functions of the table that --faults puts in front of another: each asks whether it is to
// fail, and else calls that of the next table. Contracts are those of uiwarp-abi.h.
#pragma once

#include "faults/injection.h"
#include "faults/objects.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::faults {

// The next table; set before any function here is called.
extern const uiwarp_verbs* next;

struct Taken {
  int error;          // 0, or -errno of the poll
  bool is_unsettled;  // a queue pair that has failed is still to be moved to ERR
};
// Takes what has completed from the next table, and carries out what the rules say of it; moves
// queue pairs that have failed to ERR. cq.mutex is held.
Taken take_completions(Cq& cq, Notes& notes);

// Sees to it that a queue pair which completes there and has failed goes to ERR though the program
// may not poll. cq.mutex is not held.
void watch(const std::shared_ptr<Cq>& cq);

// Forgets completions of a queue pair that were not handed out. cq.mutex is held.
void forget_completions(Cq& cq, const Qp& qp);

// Queue pairs of this process by number, for who knows nothing else of one.
void list(Qp& qp);
void unlist(const Qp& qp);

// A queue pair has gone to RTR, with these attributes: if they name its peer, a connection begins.
void connect_by_number(Qp& qp, const ibv_qp_attr& attr, int mask);

// X(name) for each; the others meet no rule, and know no object of ours.
// clang-format off
#define UIW_FAULTY_VERBS(X) \
  X(context_open) X(query_device) X(query_port) X(pd_alloc) X(mr_reg) X(mr_rereg) X(mw_alloc) \
  X(ah_create) X(cq_create) X(cq_destroy) X(cq_resize) X(cq_poll) X(cq_arm) \
  X(cq_has_overflowed) X(cq_waiting) X(cq_single_threaded) X(srq_create) X(srq_modify) \
  X(srq_post_recv) X(qp_create) X(qp_destroy) X(qp_modify) X(qp_query) X(qp_post_send) X(qp_post_recv) \
  X(qp_attach) X(qp_detach) X(qp_batch_begin) X(qp_batch_add) X(qp_batch_address) X(qp_batch_end) \
  X(cm_connecting) X(qp_break)
// clang-format on

namespace wrap {

#define UIW_DECLARE(name) decltype(uiwarp_##name) name;
UIW_FAULTY_VERBS(UIW_DECLARE)
#undef UIW_DECLARE

}  // namespace wrap
}  // namespace uiw::faults
