// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The functions of the table that --check puts in front of another: each calls that of the next
// table, keeps the objects up to date, and asks rules.h. Contracts are those of uiwarp-abi.h.
#pragma once

#include <functional>

#include "check/objects.h"
#include "check/report.h"
#include "check/rules.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::check {

// The next table; set before any function here is called.
extern const uiwarp_verbs* next;

struct Wants {
  bool hints = false;  // findings that are not certain: worth what it costs to look for them
};
extern Wants wants;

// As it is now, or ERR.
ibv_qp_state state_of(const Qp& qp);

// From listen_for() to stop_listening() what the stack tells of it is heard; from there to
// forget(), while it is destroyed, only which of its receives are dropped. It may be listened for
// again instead. Thread: any, without a lock held.
void listen_for(Qp& qp);
void stop_listening(Qp& qp);
void forget(const Qp& qp);
// Those in between, each of which stays there for its visit.
void each_listened_for(const std::function<void(Qp&)>& visit);
// Exit handlers run.
bool is_exiting();

// The program has destroyed the id of rdma_cm at `uid`, a struct rdma_cm_id, `here`: its queue
// pair, if it is still there, is reported. Thread: the program's, whose call that is.
void report_queue_pair_of(uint64_t uid, const Stack& here);

// Reports which completion queues of a context, or of all (null), have lost completions. Thread:
// any, without a lock held.
void report_overflows(const Context* context);
// Those of a context that is closed are not looked at any more.
void forget_queues(const Context& context);

// Destroying `object` failed with EBUSY.
void report_busy(const char* call, const void* object, const char* otherwise);

// X(name) for each; the others look at no object of ours.
// clang-format off
#define UIW_CHECKED_VERBS(X) \
  X(context_open) X(context_close) X(context_events_taken) X(query_device) X(query_port) \
  X(pd_alloc) X(pd_alloc_parent) X(pd_dealloc) X(pd_handle) X(pd_import) X(pd_unimport) X(pd_device) \
  X(td_alloc) X(td_dealloc) X(mr_reg) X(mr_rereg) X(mr_dereg) X(mr_handle) X(mr_import) X(mr_unimport) \
  X(mr_advise) X(mw_alloc) X(mw_dealloc) X(mw_next_rkey) X(ah_create) X(ah_destroy) \
  X(cq_create) X(cq_destroy) X(cq_resize) X(cq_poll) X(cq_single_threaded) X(cq_arm) \
  X(cq_has_overflowed) X(cq_overrun) X(cq_wake) X(cq_waiting) X(cq_event_taken) \
  X(srq_create) X(srq_modify) X(srq_query) X(srq_destroy) X(srq_post_recv) X(srq_room) X(qp_create) \
  X(qp_destroy) X(qp_modify) X(qp_query) X(qp_post_send) X(qp_post_recv) X(qp_attach) \
  X(qp_detach) X(qp_batch_begin) X(qp_batch_add) X(qp_batch_address) X(qp_batch_end) X(qp_break) X(qp_deafen) X(qp_patience) \
  X(object_free) X(acks_missing) X(peer_refused) X(write_refused) X(receive_awaited) X(receives_dropped) X(datagram_too_long) X(cm_event_taken) X(cm_id_destroyed)
// clang-format on

namespace wrap {

#define UIW_DECLARE(name) decltype(uiwarp_##name) name;
UIW_CHECKED_VERBS(UIW_DECLARE)
#undef UIW_DECLARE

}  // namespace wrap
}  // namespace uiw::check
