// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Completion queues: what a completion says of its request.
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <unordered_set>

#include "check/destroyed.h"
#include "check/forks.h"
#include "check/text.h"
#include "check/thread_rules.h"
#include "check/unread_events.h"
#include "check/watch.h"
#include "check/wraps.h"
#include "core/cause.h"
#include "core/per_process.h"
#include "core/raw_sys.h"

namespace uiw::check {
namespace {

// A receive or the answer to a Read or an atomic that is outstanding may be placed into memory of
// that region at any time.
bool may_be_placed_into(const Requests& requests, const Request& source) {
  bool overlap = false;
  requests.each([&](const Request& sink) {
    if (sink.role != Role::kSink) return;
    for (const ibv_sge& to : sink.sges)
      for (const ibv_sge& from : source.sges)
        overlap |= to.addr < from.addr + from.length && from.addr < to.addr + to.length;
  });
  return overlap;
}

// Polled: a completion of `qp`, whose mutex is held, as the context's is.
class Completed {
 public:
  Completed(Context& context, Qp& qp, const ibv_wc& wc) : context_(context), qp_(qp), wc_(wc) {}

  void sends() {
    // Which of several that have one wr_id has failed, nobody can tell for sure.
    const bool is_guess = !succeeded() && qp_.sends.is_ambiguous(wc_.wr_id);
    qp_.sends.complete_sends(wc_.wr_id, succeeded(), [&](const Request& request, bool itself) {
      if (succeeded()) check_memory(request);
      if (succeeded()) qp_.writes.add(request);
      if (itself && !succeeded()) explain(request, qp_.pd->root, is_guess);
    });
  }
  void receives(Requests& requests, const Pd& pd) {
    const bool is_guess = !succeeded() && requests.is_ambiguous(wc_.wr_id);
    requests.complete_receive(wc_.wr_id, [&](const Request& request) {
      if (!succeeded()) explain(request, pd.root, is_guess);
    });
  }

 private:
  bool succeeded() const { return wc_.status == IBV_WC_SUCCESS; }
  // By --faults: the program has done nothing wrong.
  bool is_injected() const {
    return wc_.vendor_err == static_cast<uint32_t>(core::Cause::kInjected);
  }

  // A hint: the program may know by other means that the request was carried out.
  void check_memory(const Request& request) {
    if (!request.fingerprint) return;
    const Memory now = memory_of(request, context_.regions);
    const bool same = !now.fingerprint || *now.fingerprint == *request.fingerprint;
    if (now.readable && same) return;
    if (may_be_placed_into(qp_.receives, request) || may_be_placed_into(qp_.sends, request)) return;
    Report::instance().add(
        {Kind::kBufferInFlight,
         qp_.name(),
         request.wr_id,
         now.readable
             ? "the memory of its SGEs changed between the post and the poll of its completion"
             : "the memory of its SGEs was unmapped or protected before its completion was polled",
         {{"posted", request.posted}, {"queue pair created", qp_.created()}},
         true});
  }

  void explain(const Request& request, const void* pd, bool is_guess) {
    if (is_injected()) return;
    std::optional<Verdict> verdict = why_refused(request, wc_.status, context_.regions, pd);
    if (!verdict) verdict = why_unanswered(request, wc_);
    if (!verdict) verdict = why_peer_refused(request, wc_, !is_guess);
    if (!verdict) return;
    Finding finding{
        verdict->kind,
        qp_.name(),
        request.wr_id,
        verdict->what,
        {{is_guess ? "posted, if not another one of this wr_id" : "posted", request.posted},
         {"queue pair created", qp_.created()}},
        is_guess && verdict->kind != Kind::kRemoteAccess};
    finding.places.insert(finding.places.end(), verdict->places.begin(), verdict->places.end());
    Report::instance().add(finding);
  }

  Context& context_;
  Qp& qp_;
  const ibv_wc& wc_;
};

// A child's thread has another number than the parent's that it was.
int thread_id() {
  static thread_local int tid = 0;
  static thread_local unsigned process = 0;
  if (tid == 0 || process != core::generation()) {
    process = core::generation();
    tid = core::sys::gettid();
  }
  return tid;
}

// Once, of one that has lost completions.
void report_overflow(Cq& cq) {
  if (cq.is_overflown.load() || next->cq_has_overflowed(cq.next) != UIWARP_OVERFLOWED) return;
  if (cq.is_overflown.exchange(true)) return;
  const Objects::Entry entry = Objects::instance().find(&cq);
  Report::instance().add({Kind::kCqTooSmall,
                          entry.name,
                          {},
                          "it has overflowed: more completions waited than it has entries, and at "
                          "least one is lost",
                          {{"created", entry.created}}});
}

// Those that are there, for who looks for one that nobody polls.
struct Queues {
  std::mutex mutex;
  std::unordered_set<Cq*> all;  // under mutex
};
Queues& queues() {
  static constinit core::PerProcess<Queues> all;
  return *all.get();
}

// Of a queue pair that another thread destroys, or has destroyed, since the stack gave `wc`. The
// context's mutex is held.
void take_late(const Context& context, const ibv_wc& wc) {
  const auto departed = std::ranges::find(context.departed, wc.qp_num, &Departed::number);
  if (!(wc.opcode & IBV_WC_RECV) || departed == context.departed.end()) return;
  const std::lock_guard lock(departed->srq->mutex);
  departed->srq->receives.complete_receive(wc.wr_id, [](const Request&) {});
}

void take(Context& context, ibv_wc* wcs, int count) {
  const std::shared_lock lock(context.mutex);
  for (ibv_wc* wc = wcs; wc < wcs + count; ++wc) {
    const auto found = context.qps.find(wc->qp_num);
    if (found != context.qps.end()) {
      Qp& qp = *found->second;
      const std::lock_guard queue_lock(qp.mutex);
      Completed completed(context, qp, *wc);
      if (!(wc->opcode & IBV_WC_RECV)) {
        completed.sends();
      } else if (qp.srq) {
        const std::lock_guard shared_queue_lock(qp.srq->mutex);
        completed.receives(qp.srq->receives, *qp.srq->pd);
      } else {
        completed.receives(qp.receives, *qp.pd);
      }
    } else {
      take_late(context, *wc);
    }
    if (wc->status != IBV_WC_SUCCESS) spoil(*wc);
  }
}

}  // namespace

void report_overflows(const Context* context) {
  Queues& known = queues();
  const std::lock_guard lock(known.mutex);
  for (Cq* const cq : known.all)
    if (!context || cq->context == context) report_overflow(*cq);
}

void forget_queues(const Context& context) {
  Queues& known = queues();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [&](const Cq* cq) { return cq->context == &context; });
}

namespace wrap {

int cq_create(uiwarp_context* context, int cqe, int channel_fd, int comp_vector,
              uiwarp_pd* parent_domain, void* user, uiwarp_cq** cq, int* actual) {
  if (is_gone(parent_domain, "ibv_create_cq_ex", As::kGiven)) return EINVAL;
  is_inherited(of(context), &of(context), "ibv_create_cq");
  auto* const made = new Cq;
  if (const int error = next->cq_create(of(context).next, cqe, channel_fd, comp_vector,
                                        next_of<Pd>(parent_domain), user, &made->next, actual)) {
    delete made;
    return error;
  }
  made->context = &of(context);
  made->user = user;
  made->entries = *actual = cqe;
  if (parent_domain) made->promise = of(parent_domain).promise;
  Objects::instance().add(*made->context, made, text("completion queue of %d entries", cqe),
                          {parent_domain});
  if (channel_fd >= 0) {
    made->channel_fd = channel_fd;
    made->maker = thread_id();
    watch::add(*made);
  }
  {
    const std::lock_guard lock(queues().mutex);
    queues().all.insert(made);
  }
  *cq = handle_of(made);
  return 0;
}

int cq_destroy(uiwarp_cq* handle, uint32_t* comp_events, uint32_t* async_events) {
  Cq* const cq = &of(handle);
  if (is_gone(cq, "ibv_destroy_cq")) return EINVAL;
  if (is_inherited(*cq->context, cq, "ibv_destroy_cq", Use::kDestroys))
    return next->cq_destroy(cq->next, comp_events, async_events);
  end_life(cq->life, cq, "ibv_destroy_cq");
  report_overflow(*cq);
  {
    const std::lock_guard lock(queues().mutex);
    queues().all.erase(cq);
  }
  hint_at_unread(*cq->context, cq, cq->user, "ibv_destroy_cq");
  if (cq->channel_fd >= 0) watch::remove(*cq);
  const int error = next->cq_destroy(cq->next, comp_events, async_events);
  if (error) cq->life.go_on();
  if (error && cq->channel_fd >= 0) watch::add(*cq);
  if (error == EBUSY) report_busy("ibv_destroy_cq", cq, "by queue pairs");
  if (error) {
    const std::lock_guard lock(queues().mutex);
    queues().all.insert(cq);
    return error;
  }
  bury(cq);
  return 0;
}

int cq_resize(uiwarp_cq* cq, int cqe, int* actual) {
  if (is_gone(cq, "ibv_resize_cq")) return EINVAL;
  is_inherited(*of(cq).context, &of(cq), "ibv_resize_cq");
  const int error = next->cq_resize(of(cq).next, cqe, actual);
  if (!error) of(cq).entries = *actual = cqe;
  return error;
}

int cq_poll(uiwarp_cq* handle, int count, ibv_wc* wc) {
  Cq& cq = of(handle);
  const Inside inside(cq.life, &cq, "ibv_poll_cq");
  if (!inside) return -EINVAL;
  const Alone alone(cq.polling, cq.promise, &cq, "ibv_poll_cq");
  const int taken = next->cq_poll(cq.next, count, wc);
  if (is_inherited(*cq.context, &cq, "ibv_poll_cq")) return taken;
  if (cq.channel_fd >= 0) cq.usage.polled(thread_id());
  if (cq.channel_fd >= 0 && taken >= 0 && taken < count) cq.set_emptied();
  if (taken > 0) take(*cq.context, wc, taken);
  report_overflow(cq);
  return taken;
}

void cq_single_threaded(uiwarp_cq* cq) {
  of(cq).promise = "IBV_CREATE_CQ_ATTR_SINGLE_THREADED";
  next->cq_single_threaded(of(cq).next);
}

int cq_arm(uiwarp_cq* handle, int solicited_only) {
  Cq& cq = of(handle);
  const Inside inside(cq.life, &cq, "ibv_req_notify_cq");
  if (!inside) return EINVAL;
  if (!is_inherited(*cq.context, &cq, "ibv_req_notify_cq") && cq.channel_fd >= 0) {
    cq.usage.armed(thread_id());
    using enum Arming::How;
    uint32_t messages;
    Cq::Armed now{{solicited_only ? kSolicitedOnly : kAny, next->cq_waiting(cq.next, &messages)}};
    capture(now.where);
    cq.set_armed(now);
  }
  return next->cq_arm(cq.next, solicited_only);
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

void cq_event_taken(uiwarp_cq* handle) {
  Cq& cq = of(handle);
  if (!cq.context->foreign()) cq.usage.event_taken(thread_id());
  next->cq_event_taken(cq.next);
}

uint32_t cq_waiting(uiwarp_cq* cq, uint32_t* messages) {
  return next->cq_waiting(of(cq).next, messages);
}

}  // namespace wrap
}  // namespace uiw::check
