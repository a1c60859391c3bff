// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Completion queues. Completions are taken from the next table as soon as somebody looks, and are
// held until the program may have them (shake/completions.h).
#include <cerrno>

#include "core/pause.h"
#include "core/take_all.h"
#include "shake/wraps.h"

namespace uiw::shake {
namespace {

Lane& lane_of(Cq& cq, const ibv_wc& wc) {
  const auto found = cq.qps.find(wc.qp_num);
  if (found == cq.qps.end()) return cq.strays;
  Qp& qp = *found->second;
  // One queue pair may be there for its other queue only.
  if (wc.opcode & IBV_WC_RECV) return qp.recv_cq == &cq ? qp.receives : cq.strays;
  return qp.send_cq == &cq ? qp.sends : cq.strays;
}

// What the poll failed with, negative, or 0. cq.mutex is held.
int take(Cq& cq) {
  const core::Nanoseconds now = core::now();
  return core::take_all(*next, cq.next,
                        [&](const ibv_wc& wc) { cq.completions.add(lane_of(cq, wc), wc, now); });
}

// The next table arms without the mutex: --faults waits there for what is late, and others may poll
// meanwhile. The first completion that they take is owed, as behind an arming; the rest is, once
// this is over.
int arm(Cq& cq, int solicited_only, bool takes_first) {
  {
    const std::lock_guard lock(cq.mutex);
    // Of what is there the next table raises an event, if it has raised none yet.
    if (takes_first) take(cq);
    cq.completions.arm(solicited_only != 0);
  }
  const int error = next->cq_arm(cq.next, solicited_only);
  const std::lock_guard lock(cq.mutex);
  // --faults holds completions back until then, which have had their event: they have come before.
  take(cq);
  cq.completions.arm(solicited_only != 0);
  return error;
}

}  // namespace

namespace wrap {

// An asynchronous event may say that no more completions are to come: the last one of a queue pair
// with an SRQ does (IBV_EVENT_QP_LAST_WQE_REACHED). Then what is there is to be found.
void context_events_taken(uiwarp_context* context, int asynchronous) {
  Process* const process = asynchronous ? this_process() : nullptr;
  if (process) {
    const std::lock_guard lock(process->mutex);
    for (Cq* const cq : process->cqs) {
      if (cq->context != context) continue;
      const std::lock_guard queue_lock(cq->mutex);
      cq->completions.show_all();
    }
  }
  next->context_events_taken(context, asynchronous);
}

int cq_create(uiwarp_context* context, int cqe, int channel_fd, int comp_vector,
              uiwarp_pd* parent_domain, void* user, uiwarp_cq** cq, int* actual) {
  Process* const process = this_process();
  if (!process) return ENOMEM;
  uiwarp_cq* made = nullptr;
  if (const int error = next->cq_create(context, cqe, channel_fd, comp_vector, parent_domain, user,
                                        &made, actual))
    return error;
  auto* const ours = new Cq(options, ++process->last_cq);
  ours->next = made;
  ours->context = context;
  const std::lock_guard lock(process->mutex);
  process->cqs.insert(ours);
  *cq = reinterpret_cast<uiwarp_cq*>(ours);
  return 0;
}

int cq_destroy(uiwarp_cq* handle, uint32_t* comp_events, uint32_t* async_events) {
  Cq* const cq = &of(handle);
  const int error = next->cq_destroy(cq->next, comp_events, async_events);
  if (error || cq->foreign()) return error;
  if (Process* const process = this_process()) {
    const std::lock_guard lock(process->mutex);
    process->cqs.erase(cq);
  }
  delete cq;
  return 0;
}

int cq_resize(uiwarp_cq* cq, int cqe, int* actual) {
  return next->cq_resize(of(cq).next, cqe, actual);
}

int cq_poll(uiwarp_cq* handle, int count, ibv_wc* wc) {
  Cq& cq = of(handle);
  if (cq.foreign()) return next->cq_poll(cq.next, count, wc);
  if (count < 0) return -EINVAL;
  const std::lock_guard lock(cq.mutex);
  const int error = take(cq);
  const int given = cq.completions.poll(count, wc, core::now());
  return given > 0 ? given : error;
}

int cq_arm(uiwarp_cq* handle, int solicited_only) {
  Cq& cq = of(handle);
  if (cq.foreign()) return next->cq_arm(cq.next, solicited_only);
  ArmingPlan plan;
  {
    const std::lock_guard lock(cq.mutex);
    plan = cq.completions.next_arming();
  }
  const core::Nanoseconds until = core::now() + plan.pause;
  if (plan.how == Arming::kLate) core::sleep_until(until);
  const int error = arm(cq, solicited_only, plan.how != Arming::kTold);
  if (plan.how == Arming::kTold) core::sleep_until(until);
  return error;
}

int cq_has_overflowed(uiwarp_cq* cq) {
  return next->cq_has_overflowed(of(cq).next);
}

void cq_overrun(uiwarp_cq* cq) {
  next->cq_overrun(of(cq).next);
}

void cq_wake(uiwarp_cq* cq) {
  next->cq_wake(of(cq).next);
}

void cq_event_taken(uiwarp_cq* cq) {
  next->cq_event_taken(of(cq).next);
}

void cq_single_threaded(uiwarp_cq* cq) {
  next->cq_single_threaded(of(cq).next);
}

uint32_t cq_waiting(uiwarp_cq* handle, uint32_t* messages) {
  Cq& cq = of(handle);
  if (cq.foreign()) return next->cq_waiting(cq.next, messages);
  const std::lock_guard lock(cq.mutex);
  const uint32_t behind = next->cq_waiting(cq.next, messages);
  const Completions::Waiting held = cq.completions.waiting();
  *messages += held.messages;
  return behind + held.all;
}

}  // namespace wrap
}  // namespace uiw::shake
