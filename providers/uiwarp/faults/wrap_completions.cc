// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Completion queues. Completions are taken from the next table as soon as somebody looks, and wait
// here, in their order, until they may be handed out.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "core/cause.h"
#include "core/pause.h"
#include "core/take_all.h"
#include "core/verbs_names.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

ibv_wc_opcode completes_as(ibv_wr_opcode opcode) {
  switch (core::value_of(opcode)) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    default:
      return IBV_WC_SEND;
  }
}

// What the rules say of a completion that the next table has given; when it is due. The mutex of
// `qp` is held.
class Arrived {
 public:
  Arrived(Qp& qp, ibv_wc& wc, Notes& notes) : qp_(qp), wc_(wc), notes_(notes) {}

  core::Nanoseconds send() {
    const std::optional<Sent> sent = qp_.sends.complete(wc_.wr_id, succeeded());
    // Datagrams behind one that has failed have left, and got lost.
    const bool is_behind = qp_.fate == Fate::kFailed || qp_.fate == Fate::kOver;
    if (qp_.is_for_datagrams && is_behind && succeeded()) wc_.status = IBV_WC_WR_FLUSH_ERR;
    if (!succeeded()) {
      qp_.is_over = true;
      if (std::exchange(qp_.times_out, false) && wc_.status == IBV_WC_WR_FLUSH_ERR)
        wc_.status = IBV_WC_RETRY_EXC_ERR;
    }
    // Whatever has failed, a stand-in flushes with the rest, and what is held may follow.
    if (!succeeded() && qp_.fate == Fate::kFailing) qp_.fate = Fate::kFailed;
    blame_rule();
    if (!sent) return 0;
    if (sent->is_replaced) wc_.opcode = completes_as(sent->opcode);
    if (!sent->hit || !succeeded()) return 0;
    if (!sent->fails()) return delay(*sent->hit);
    fail(*sent->hit);
    return 0;
  }

  core::Nanoseconds receive() {
    blame_rule();
    if (!succeeded()) {
      qp_.is_over = true;
      return 0;
    }
    if (qp_.has_failed_receive) {
      wc_.status = IBV_WC_WR_FLUSH_ERR;
      blame_rule();
      return 0;
    }
    if (qp_.is_for_datagrams) return 0;  // they are met as they come (wrap_datagrams.cc)
    const std::optional<Hit> hit = qp_.stream.next(rules(), Event::kRecv);
    if (!hit) return 0;
    if (hit->rule->action == Action::kDelay) return delay(*hit);
    qp_.has_failed_receive = true;
    fail(*hit);
    return 0;
  }

 private:
  bool succeeded() const { return wc_.status == IBV_WC_SUCCESS; }

  void fail(const Hit& hit) {
    if (qp_.fate != Fate::kOver) qp_.fate = Fate::kFailed;
    qp_.is_injected = true;
    if (hit.rule->action == Action::kStatus) {
      wc_.status = hit.rule->status;
      notes_.request(hit, qp_, wc_.status);
    } else {
      wc_.status = qp_.doom && qp_.doom->is_by_cm ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR;
      notes_.connection(hit, qp_.number);
    }
    blame_rule();
  }

  // What flushes behind one that failed by a rule has failed by it, too.
  void blame_rule() {
    if (qp_.is_injected && !succeeded())
      wc_.vendor_err = static_cast<uint32_t>(core::Cause::kInjected);
  }

  core::Nanoseconds delay(const Hit& hit) {
    notes_.late(hit, qp_);
    return core::now() + hit.delay;
  }

  Qp& qp_;
  ibv_wc& wc_;
  Notes& notes_;
};

// The failure of a request that was not answered in time comes before what flushes by it, though
// the stack knows nothing of it and has flushed receives first. Behind what the send queue has
// given.
std::deque<Withheld>::iterator place_of(Cq& cq, const Qp* qp, const ibv_wc& wc) {
  if (!qp || wc.status != IBV_WC_RETRY_EXC_ERR) return cq.withheld.end();
  auto place = cq.withheld.end();
  while (place != cq.withheld.begin()) {
    const Withheld& before = *std::prev(place);
    const bool flushed = before.wc.status == IBV_WC_WR_FLUSH_ERR;
    if (before.qp != qp || !flushed || !(before.wc.opcode & IBV_WC_RECV)) break;
    --place;
  }
  return place;
}

void keep(Cq& cq, ibv_wc wc, Notes& notes) {
  const auto found = cq.qps.find(wc.qp_num);
  Qp* const qp = found == cq.qps.end() ? nullptr : found->second;
  core::Nanoseconds due = 0;
  if (qp) {
    const std::lock_guard lock(qp->mutex);
    Arrived arrived(*qp, wc, notes);
    due = wc.opcode & IBV_WC_RECV ? arrived.receive() : arrived.send();
  }
  if (const std::optional<Hit> hit = cq.stream.next(rules(), Event::kCompletion)) {
    notes.overrun(*hit, wc.qp_num);
    notes.before_the_stack();
    if (!next->cq_has_overflowed(cq.next)) cq.is_overrun = true;
    next->cq_overrun(cq.next);
    return;
  }
  cq.withheld.insert(place_of(cq, qp, wc), {wc, qp, due});
}

// qp.mutex is held.
void end_connection(Qp& qp) {
  if (qp.doom ? qp.doom->is_by_cm : qp.times_out && !qp.is_by_number) next->qp_break(qp.next);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  next->qp_modify(qp.next, &attr, IBV_QP_STATE);
}

// To ERR with a queue pair that has failed, and behind that what was held. False: later, since
// somebody is posting.
bool settle(Qp& qp) {
  const std::unique_lock posting(qp.posting, std::try_to_lock);
  if (!posting) return false;
  const std::lock_guard lock(qp.mutex);
  if (qp.fate != Fate::kFailed) return true;
  end_connection(qp);
  qp.is_over = true;
  size_t posted = 0;
  for (; posted < qp.held.size(); ++posted) {
    ibv_send_wr empty{}, *ignored = nullptr;
    empty.wr_id = qp.held[posted].wr_id;
    empty.opcode = IBV_WR_SEND;
    empty.send_flags = IBV_SEND_SIGNALED;
    qp.sends.add(qp.held[posted]);
    if (next->qp_post_send(qp.next, &empty, &ignored)) {
      qp.sends.extract_newest(1);
      break;
    }
  }
  qp.held.erase(qp.held.begin(), qp.held.begin() + static_cast<std::ptrdiff_t>(posted));
  if (qp.held.empty()) qp.fate = Fate::kOver;
  return qp.held.empty();
}

int take(Cq& cq, Notes& notes) {
  return core::take_all(*next, cq.next, [&](const ibv_wc& wc) { keep(cq, wc, notes); });
}

bool has_failed(Qp& qp) {
  const std::lock_guard lock(qp.mutex);
  return qp.fate == Fate::kFailed;
}

}  // namespace

Taken take_completions(Cq& cq, Notes& notes) {
  Taken taken{take(cq, notes), false};
  bool has_settled = false;
  for (const auto& [number, qp] : cq.qps) {
    if (qp->is_leaving || !has_failed(*qp)) continue;
    notes.before_the_stack();
    if (settle(*qp))
      has_settled = true;
    else
      taken.is_unsettled = true;
  }
  // What has flushed by that.
  if (has_settled) take(cq, notes);
  return taken;
}

namespace wrap {

int cq_create(uiwarp_context* context, int cqe, int channel_fd, int comp_vector,
              uiwarp_pd* parent_domain, void* user, uiwarp_cq** cq, int* actual) {
  static std::atomic<uint64_t> made_so_far{0};
  if (const int error = failing(Event::kCreateCq)) return error;
  uiwarp_cq* made = nullptr;
  if (const int error = next->cq_create(context, cqe, channel_fd, comp_vector, parent_domain, user,
                                        &made, actual))
    return error;
  auto* const ours = new std::shared_ptr<Cq>(std::make_shared<Cq>(++made_so_far));
  (*ours)->next = made;
  *cq = reinterpret_cast<uiwarp_cq*>(ours);
  return 0;
}

int cq_destroy(uiwarp_cq* handle, uint32_t* comp_events, uint32_t* async_events) {
  const std::shared_ptr<Cq> cq = of(handle);
  if (cq->foreign()) return next->cq_destroy(cq->next, comp_events, async_events);
  {
    const std::lock_guard lock(cq->mutex);
    if (const int error = next->cq_destroy(cq->next, comp_events, async_events)) return error;
    cq->is_destroyed = true;
  }
  delete &of(handle);
  return 0;
}

int cq_resize(uiwarp_cq* handle, int cqe, int* actual) {
  Cq& cq = *of(handle);
  if (cq.foreign()) return next->cq_resize(cq.next, cqe, actual);
  Notes notes;
  const std::lock_guard lock(cq.mutex);
  if (const int error = failing(Event::kResizeCq, cq.stream, notes)) return error;
  return next->cq_resize(cq.next, cqe, actual);
}

int cq_poll(uiwarp_cq* handle, int count, ibv_wc* wc) {
  const std::shared_ptr<Cq>& shared = of(handle);
  Cq& cq = *shared;
  if (cq.foreign()) return next->cq_poll(cq.next, count, wc);
  int given = 0;
  bool is_unsettled;
  {
    Notes notes;
    const std::lock_guard lock(cq.mutex);
    if (const int error = failing(Event::kPollCq, cq.stream, notes)) return -error;
    const Taken taken = take_completions(cq, notes);
    is_unsettled = taken.is_unsettled;
    if (taken.error && cq.withheld.empty()) return taken.error;
    const core::Nanoseconds now = cq.withheld.empty() ? 0 : core::now();
    for (; given < count && !cq.withheld.empty() && cq.withheld.front().due <= now; ++given) {
      wc[given] = cq.withheld.front().wc;
      cq.withheld.pop_front();
    }
  }
  if (is_unsettled) watch(shared);
  return given;
}

// Who waits for an event behind this call gets none for what is withheld: its event has come, when
// it came here. So it is due before the call returns, and whoever arms polls again.
int cq_arm(uiwarp_cq* handle, int solicited_only) {
  Cq& cq = *of(handle);
  if (cq.foreign()) return next->cq_arm(cq.next, solicited_only);
  core::Nanoseconds due = 0;
  {
    Notes notes;
    const std::lock_guard lock(cq.mutex);
    if (const int error = failing(Event::kReqNotifyCq, cq.stream, notes)) return error;
    if (const int error = next->cq_arm(cq.next, solicited_only)) return error;
    take_completions(cq, notes);
    for (const Withheld& each : cq.withheld) due = std::max(due, each.due);
  }
  if (due) core::sleep_until(due);
  return 0;
}

void cq_overrun(uiwarp_cq* cq) {
  next->cq_overrun(of(cq)->next);
}

void cq_wake(uiwarp_cq* cq) {
  next->cq_wake(of(cq)->next);
}

int cq_has_overflowed(uiwarp_cq* cq) {
  const int overflowed = next->cq_has_overflowed(of(cq)->next);
  return overflowed && of(cq)->is_overrun ? UIWARP_OVERRUN : overflowed;
}

// Those that come late are not there.
uint32_t cq_waiting(uiwarp_cq* cq, uint32_t* messages) {
  return next->cq_waiting(of(cq)->next, messages);
}

void cq_event_taken(uiwarp_cq* cq) {
  next->cq_event_taken(of(cq)->next);
}

void cq_single_threaded(uiwarp_cq* cq) {
  next->cq_single_threaded(of(cq)->next);
}

}  // namespace wrap
}  // namespace uiw::faults
