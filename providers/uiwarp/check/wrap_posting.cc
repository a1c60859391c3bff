// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is posted. A request is in the list before the next table has it, since another thread may
// poll its completion before the post returns. A queue's turn is held from then until the next
// table has answered: requests that have one wr_id are told apart by their order only, and one that
// is refused has to be behind those that were taken. No mutex is held meanwhile: what the stack
// tells during a post takes them.
#include <cerrno>
#include <mutex>
#include <utility>

#include "check/destroyed.h"
#include "check/forks.h"
#include "check/rewritten.h"
#include "check/thread_rules.h"
#include "check/wraps.h"
#include "core/injected.h"

namespace uiw::check {
namespace {

Request request_of(const Qp& qp, const ibv_send_wr& wr, const Stack& posted) {
  const Context& context = *qp.pd->context;
  Request request;
  request.wr_id = wr.wr_id;
  request.role = role_of(wr);
  request.signaled = qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED);
  if (request.role != Role::kNothing) request.sges = sges_of(wr.sg_list, wr.num_sge);
  const Remote remote = remote_of(wr);
  request.remote_address = remote.address;
  request.rkey = remote.rkey;
  // What a Read before it brings is waited for by a fenced one.
  if (wants.hints && !(wr.send_flags & IBV_SEND_FENCE))
    request.fingerprint = memory_of(request, context.regions).fingerprint;
  request.posted = posted;
  return request;
}

Request request_of(const ibv_recv_wr& wr, const Stack& posted) {
  Request request;
  request.wr_id = wr.wr_id;
  request.role = Role::kSink;
  request.signaled = true;
  request.sges = sges_of(wr.sg_list, wr.num_sge);
  request.posted = posted;
  return request;
}

void report(const Qp& qp, uint64_t wr_id, const std::optional<Fault>& fault, const Stack& posted,
            bool is_hint = false) {
  if (!fault) return;
  Report::instance().add({fault->kind,
                          qp.name(),
                          wr_id,
                          fault->what,
                          {{"posted", posted}, {"queue pair created", qp.created()}},
                          is_hint});
}

// What the stack takes, and adapters do not. The queue pair's mutex is held.
void report_taken(const Qp& qp, const ibv_send_wr& wr, const Stack& posted) {
  report(qp, wr.wr_id, inline_not_asked(wr, qp.cap.max_inline_data), posted);
  if (qp.is_in_rtr) report(qp, wr.wr_id, too_early(state_of(qp)), posted);
  report(qp, wr.wr_id, qp.moves.no_depth_for(wr), posted);
}

// What a window is bound to, and the window itself. What was destroyed of them is still to be read
// (bury_memory()). The context's mutex is held.
void report_binding(const Qp& qp, const ibv_send_wr& wr, const Stack& posted) {
  if (wr.opcode != IBV_WR_BIND_MW) return;
  if (const auto* const mw = reinterpret_cast<const uiwarp_ibv_mw*>(wr.bind_mw.mw))
    is_handle_gone(mw->core, "ibv_post_send", As::kGiven);
  const ibv_mr* const mr = wr.bind_mw.bind_info.mr;
  const Region* const gone = mr ? qp.pd->context->regions.find_gone(mr->lkey) : nullptr;
  if (!gone) return;
  Report::instance().add({Kind::kUsedAfterDestroy,
                          gone->name(),
                          wr.wr_id,
                          "a memory window is bound to it after it was deregistered",
                          {{"posted", posted},
                           {"memory registered", gone->registered},
                           {"memory deregistered", gone->deregistered}}});
}

// Of a UD queue pair the handle that a request is to be sent by.
bool is_address_gone(const Qp& qp, const ibv_send_wr& wr) {
  const auto* const ah = reinterpret_cast<const uiwarp_ibv_ah*>(wr.wr.ud.ah);
  return qp.type == IBV_QPT_UD && ah && is_handle_gone(ah->core, "ibv_post_send", As::kGiven);
}

void report_refusal(Qp& qp, const ibv_send_wr& wr, int error, const Stack& posted) {
  if (is_address_gone(qp, wr)) return;
  const ibv_qp_state state = state_of(qp);
  uint32_t messages;
  const uint32_t waiting = next->cq_waiting(qp.send_cq->next, &messages);
  std::optional<Fault> fault, hint;
  {
    const std::lock_guard lock(qp.mutex);
    fault = why_send_refused(wr, error, state, qp.cap, qp.sends);
    hint = not_polled(error, qp.sends, waiting);
  }
  if (!fault) report(qp, wr.wr_id, hint, posted, true);
  // That was said before it was posted.
  if (fault && fault->kind == Kind::kInline) return;
  report(qp, wr.wr_id, fault, posted);
}

// Posts a list to `post(first copy, bad copy)`. `describe` makes the Request of a
// work request, `refused` is told of the one that was not taken, unless that was by a rule.
template <class WorkRequest, class Post, class Describe, class Refused>
int post_all(Context& context, Turn& turn, std::mutex& mutex, Requests& requests, WorkRequest* wr,
             WorkRequest** bad, Post post, Describe describe, Refused refused) {
  const InTurn in_turn(turn);
  while (wr) {
    uint32_t first = 0;
    std::shared_lock table_lock(context.mutex);
    Rewritten<WorkRequest> part(wr, context.regions);
    {
      const std::lock_guard lock(mutex);
      for (size_t i = 0; i < part.count(); ++i) {
        const uint32_t sequence = requests.add(describe(part.original(i)));
        if (i == 0) first = sequence;
      }
    }
    table_lock.unlock();
    WorkRequest* stopped = part.first();
    const core::Injections injected;
    if (const int error = post(part.first(), &stopped)) {
      const size_t at = part.index_of(stopped);
      {
        // Nobody comes between those of one list.
        const std::lock_guard lock(mutex);
        for (size_t i = at; i < part.count(); ++i)
          requests.take_back(first + static_cast<uint32_t>(i));
      }
      if (!injected.any()) refused(part.original(at), error);
      if (bad) *bad = part.original_of(stopped);
      return error;
    }
    wr = part.rest();
  }
  return 0;
}

// What a call on a destroyed queue answers.
template <class WorkRequest>
int refuse_all(WorkRequest* wr, WorkRequest** bad) {
  if (bad) *bad = wr;
  return EINVAL;
}

}  // namespace

namespace wrap {

int qp_post_send(uiwarp_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, "ibv_post_send");
  if (!inside) return refuse_all(wr, bad);
  if (is_inherited(*qp.pd->context, &qp, "ibv_post_send"))
    return next->qp_post_send(qp.next, wr, bad);
  Stack posted;
  capture(posted);
  if (qp.section.is_of(this_thread())) report_waiting(qp, "ibv_post_send", posted);
  const Alone alone(qp.sending, qp.pd->promise, &qp, "ibv_post_send");
  return post_all(
      *qp.pd->context, qp.post_send, qp.mutex, qp.sends, wr, bad,
      [&](ibv_send_wr* first, ibv_send_wr** stopped) {
        return next->qp_post_send(qp.next, first, stopped);
      },
      [&](const ibv_send_wr& each) {
        report_taken(qp, each, posted);
        report_binding(qp, each, posted);
        return request_of(qp, each, posted);
      },
      [&](const ibv_send_wr& each, int error) { report_refusal(qp, each, error, posted); });
}

int qp_post_recv(uiwarp_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, "ibv_post_recv");
  if (!inside) return refuse_all(wr, bad);
  if (is_inherited(*qp.pd->context, &qp, "ibv_post_recv"))
    return next->qp_post_recv(qp.next, wr, bad);
  Stack posted;
  capture(posted);
  const Alone alone(qp.receiving, qp.pd->promise, &qp, "ibv_post_recv");
  const int error = post_all(
      *qp.pd->context, qp.post_receive, qp.mutex, qp.receives, wr, bad,
      [&](ibv_recv_wr* first, ibv_recv_wr** stopped) {
        return next->qp_post_recv(qp.next, first, stopped);
      },
      [&](const ibv_recv_wr& each) { return request_of(each, posted); },
      [&](const ibv_recv_wr& each, int why) {
        report(qp, each.wr_id, why_receive_refused(why, state_of(qp), qp.srq != nullptr), posted);
      });
  if (error) return error;
  const std::lock_guard lock(qp.mutex);
  qp.moves.receive_taken(posted);
  return 0;
}

int srq_post_recv(uiwarp_srq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Srq& srq = of(handle);
  const Inside inside(srq.life, &srq, "ibv_post_srq_recv");
  if (!inside) return refuse_all(wr, bad);
  if (is_inherited(*srq.pd->context, &srq, "ibv_post_srq_recv"))
    return next->srq_post_recv(srq.next, wr, bad);
  Stack posted;
  capture(posted);
  const Alone alone(srq.receiving, srq.pd->promise, &srq, "ibv_post_srq_recv");
  return post_all(
      *srq.pd->context, srq.post, srq.mutex, srq.receives, wr, bad,
      [&](ibv_recv_wr* first, ibv_recv_wr** stopped) {
        return next->srq_post_recv(srq.next, first, stopped);
      },
      [&](const ibv_recv_wr& each) { return request_of(each, posted); },
      [](const ibv_recv_wr&, int) {});
}

void qp_batch_begin(uiwarp_qp* handle) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, "ibv_wr_start");
  if (!inside) return;
  if (is_inherited(*qp.pd->context, &qp, "ibv_wr_start")) return next->qp_batch_begin(qp.next);
  Stack here;
  capture(here);
  if (qp.section.is_of(this_thread())) report_waiting(qp, "ibv_wr_start", here);
  enter_section(qp, here);
  qp.post_send.take();
  next->qp_batch_begin(qp.next);
  qp.section.begin(this_thread(), here);
  qp.batch.clear();
}

int qp_batch_add(uiwarp_qp* handle, const ibv_send_wr* wr) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, "ibv_wr_*()");
  if (!inside) return EINVAL;
  Context& context = *qp.pd->context;
  if (context.foreign()) return next->qp_batch_add(qp.next, wr);
  Stack posted;
  capture(posted);
  if (!qp.section.is_plain(this_thread())) report_outside(qp, "ibv_wr_*()", posted);
  ibv_send_wr one = *wr;
  one.next = nullptr;
  std::shared_lock table_lock(context.mutex);
  Rewritten<ibv_send_wr> rewritten(&one, context.regions);
  report_binding(qp, one, posted);
  const Request request = request_of(qp, one, posted);
  table_lock.unlock();
  {
    const std::lock_guard lock(qp.mutex);
    report_taken(qp, one, posted);
  }
  const core::Injections injected;
  if (const int error = next->qp_batch_add(qp.next, rewritten.first())) {
    if (!injected.any()) report_refusal(qp, one, error, posted);
    return error;
  }
  const std::lock_guard lock(qp.mutex);
  qp.batch.push_back(qp.sends.add(request));
  return 0;
}

int qp_batch_address(uiwarp_qp* handle, const ibv_ah* ah, uint32_t remote_qpn,
                     uint32_t remote_qkey) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, "ibv_wr_set_ud_addr");
  if (!inside) return EINVAL;
  return next->qp_batch_address(qp.next, ah, remote_qpn, remote_qkey);
}

int qp_batch_end(uiwarp_qp* handle, int publish) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, publish ? "ibv_wr_complete" : "ibv_wr_abort");
  if (!inside) return EINVAL;
  if (qp.pd->context->foreign()) return next->qp_batch_end(qp.next, publish);
  Stack here;
  if (!qp.section.is_plain(this_thread())) {
    capture(here);
    report_outside(qp, publish ? "ibv_wr_complete()" : "ibv_wr_abort()", here);
  }
  const Thread owner = qp.section.end();
  qp.sending.leave(owner);
  // Another thread's as soon as the section ends.
  const std::vector<uint32_t> batch = std::exchange(qp.batch, {});
  const core::Injections injected;
  const int error = next->qp_batch_end(qp.next, publish);
  // All are refused: the first one stands for them.
  std::optional<uint64_t> first;
  if (!publish || error) {
    const std::lock_guard lock(qp.mutex);
    for (const uint32_t sequence : batch) {
      const std::optional<uint64_t> wr_id = qp.sends.take_back(sequence);
      if (!first) first = wr_id;
    }
  }
  if (owner != 0) qp.post_send.give();  // which may be another section's otherwise
  if (publish && !error) return 0;
  capture(here);
  ibv_send_wr refused{};
  refused.wr_id = first.value_or(0);
  if (error && first && !injected.any()) report_refusal(qp, refused, error, here);
  return error;
}

}  // namespace wrap
}  // namespace uiw::check
