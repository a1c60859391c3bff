// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The functions of the table that --faults puts in front of another: each asks whether it is to
// fail, and else calls that of the next table. Contracts are those of uiwarp-abi.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

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

// Forgets completions of a queue pair that were not handed out; adds the wr_ids of receives to
// `receives`. cq.mutex is held.
void forget_completions(Cq& cq, const Qp& qp, std::vector<uint64_t>& receives);

// Queue pairs of this process by number, for who knows nothing else of one.
void list(Qp& qp);
void unlist(const Qp& qp);
// Of the one with this number, if there is one, and of all. None is destroyed meanwhile; engines
// may wait for it, so that it must not wait for them.
void visit(uint32_t qp_num, const std::function<void(Qp&)>& visit_it);
void visit_all(const std::function<void(Qp&)>& visit_it);

// What is posted with post_one() and is not to leave yet: see courier.cc. qp.posting is held.
// False: nothing holds it up, and it is to be posted.
bool keep_back(Qp& qp, const ibv_send_wr& wr);
// What was kept back leaves now, if nobody posts. No lock is held.
void hurry(Qp& qp);
// The port is up again: what was kept back and is due leaves soon.
void look_at_parcels(const Qp& qp);
// The newest that were kept back are not posted after all, and do not count. qp.posting is held.
void drop_parcels(Qp& qp, size_t count);
// They are posted, as far as the program knows: says, once for each edition of the rules, that one
// paces them. qp.posting is held.
void tell_of_pace(Qp& qp, size_t count, Notes& notes);

// The times of the rules in force begin, unless they have: when the process has opened its first
// device, and when they are put in force later.
void start_clock();
// The ports that rules hold down are up again. On the thread of later().
void let_ports_go();

// What is remembered of a request, whatever the rules say of it.
Sent sent_of(const Qp& qp, const ibv_send_wr& wr);
// One of a list, and one of a batch, to a queue pair for datagrams. qp.posting is held.
int post_datagram(Qp& qp, const ibv_send_wr& wr);
int add_datagram(Qp& qp, const ibv_send_wr& wr);
// A request is counted, and may meet a rule. qp.mutex is held.
void count(Qp& qp, Event event, Sent& sent);
// The newest requests were not posted after all, nor those that were held: they do not count, and
// those that come next meet the rules in their place. qp.posting is held.
void take_back(Qp& qp, size_t added, size_t held);

// The process has a device open: its rules may be changed from now on.
void listen_for_changes();

// Ports that rules hold down. Thread: any.
struct Downtime {
  core::Nanoseconds since, until;
  const Rule* rule;  // by which it is
};
std::optional<Downtime> downtime(const std::string& device);
core::Nanoseconds down_until(const std::string& device);  // 0: it is not down

// A queue pair has gone to RTR, with these attributes: if they name its peer, a connection begins.
void connect_by_number(Qp& qp, const ibv_qp_attr& attr, int mask);

// X(name) for each; the others meet no rule, and know no object of ours.
// clang-format off
#define UIW_FAULTY_VERBS(X) \
  X(context_open) X(query_device) X(query_port) X(pd_alloc) X(mr_reg) X(mr_rereg) X(mw_alloc) \
  X(ah_create) X(cq_create) X(cq_destroy) X(cq_resize) X(cq_poll) X(cq_arm) \
  X(cq_has_overflowed) X(cq_waiting) X(cq_event_taken) X(cq_single_threaded) X(srq_create) X(srq_modify) \
  X(srq_post_recv) X(qp_create) X(qp_destroy) X(qp_modify) X(qp_query) X(qp_post_send) X(qp_post_recv) \
  X(qp_attach) X(qp_detach) X(qp_batch_begin) X(qp_batch_add) X(qp_batch_address) X(qp_batch_end) \
  X(cm_connecting) X(cm_accepting) X(connected) X(qp_break) X(qp_deafen) X(qp_patience) X(datagram_arriving) X(cq_overrun) X(cq_wake)
// clang-format on

namespace wrap {

#define UIW_DECLARE(name) decltype(uiwarp_##name) name;
UIW_FAULTY_VERBS(UIW_DECLARE)
#undef UIW_DECLARE

}  // namespace wrap
}  // namespace uiw::faults
