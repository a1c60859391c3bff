// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs but for what is posted to their send queues.
#include <atomic>

#include "core/tell_dropped.h"
#include "faults/wraps.h"

namespace uiw::faults {

void forget_completions(Cq& cq, const Qp& qp, std::vector<uint64_t>& receives) {
  std::erase_if(cq.withheld, [&](const Withheld& each) {
    if (each.qp != &qp) return false;
    if (each.wc.opcode & IBV_WC_RECV) receives.push_back(each.wc.wr_id);
    return true;
  });
}

namespace {

// Calls `visit` for the queues that it completes to, one after the other, with the lock held.
template <class Visit>
void each_cq(const Qp& qp, Visit visit) {
  for (Cq* const cq : {qp.send_cq.get(), qp.recv_cq.get()}) {
    const std::lock_guard lock(cq->mutex);
    visit(*cq);
  }
}

void set_leaving(Qp& qp, bool is_leaving) {
  each_cq(qp, [&](Cq&) { qp.is_leaving = is_leaving; });
}

}  // namespace

namespace wrap {

int qp_create(uiwarp_pd* pd, uiwarp_qp_init* init, uiwarp_qp** qp, uint32_t* qp_num) {
  static std::atomic<uint64_t> made_so_far{0};
  if (const int error = failing(Event::kCreateQp)) return error;
  uiwarp_qp_init inner = *init;
  inner.send_cq = of(init->send_cq)->next;
  inner.recv_cq = of(init->recv_cq)->next;
  uiwarp_qp* made = nullptr;
  if (const int error = next->qp_create(pd, &inner, &made, qp_num)) return error;
  init->cap = inner.cap;
  auto* const ours = new Qp(++made_so_far);
  ours->next = made;
  ours->send_cq = of(init->send_cq);
  ours->recv_cq = of(init->recv_cq);
  ours->number = *qp_num;
  ours->cap = inner.cap;
  ours->is_for_datagrams = init->qp_type == IBV_QPT_UD;
  ours->signal_all = init->sq_sig_all != 0;
  ours->device = next->pd_device(pd);
  each_cq(*ours, [&](Cq& cq) { cq.qps[ours->number] = ours; });
  list(*ours);
  if (down_until(ours->device)) next->qp_deafen(made, 1);
  *qp = reinterpret_cast<uiwarp_qp*>(ours);
  return 0;
}

int qp_destroy(uiwarp_qp* handle, uint32_t* async_events) {
  Qp* const qp = &of(handle);
  if (qp->foreign()) return next->qp_destroy(qp->next, async_events);
  set_leaving(*qp, true);
  unlist(*qp);
  if (const int error = next->qp_destroy(qp->next, async_events)) {
    set_leaving(*qp, false);
    list(*qp);
    return error;
  }
  std::vector<uint64_t> receives;
  each_cq(*qp, [&](Cq& cq) {
    forget_completions(cq, *qp, receives);
    // Its number may be another one's by now.
    const auto found = cq.qps.find(qp->number);
    if (found != cq.qps.end() && found->second == qp) cq.qps.erase(found);
  });
  core::tell_dropped(qp->number, receives);
  delete qp;
  return 0;
}

int qp_modify(uiwarp_qp* handle, const ibv_qp_attr* attr, int mask) {
  Qp& qp = of(handle);
  if (const int error = failing(Event::kModifyQp, qp)) return error;
  const int error = next->qp_modify(qp.next, attr, mask);
  if (error || !(mask & IBV_QP_STATE)) return error;
  if (attr->qp_state == IBV_QPS_RTR) connect_by_number(qp, *attr, mask);
  qp.is_over = attr->qp_state == IBV_QPS_ERR;
  if (attr->qp_state == IBV_QPS_ERR) hurry(qp);
  if (attr->qp_state != IBV_QPS_RESET) return 0;
  {
    const std::lock_guard lock(qp.posting);
    qp.parcels.clear();
  }
  // It begins anew.
  std::vector<uint64_t> receives;
  each_cq(qp, [&](Cq& cq) { forget_completions(cq, qp, receives); });
  core::tell_dropped(qp.number, receives);
  const std::lock_guard lock(qp.mutex);
  qp.sends.clear();
  qp.held.clear();
  qp.fate = Fate::kNone;
  qp.has_failed_receive = qp.is_injected = qp.is_by_number = qp.times_out = false;
  qp.doom.reset();
  return 0;
}

int qp_query(uiwarp_qp* handle, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  Qp& qp = of(handle);
  if (const int error = failing(Event::kQueryQp, qp)) return error;
  return next->qp_query(qp.next, attr, mask, init);
}

int qp_attach(uiwarp_qp* qp, const ibv_gid* gid) {
  return next->qp_attach(of(qp).next, gid);
}

int qp_detach(uiwarp_qp* qp, const ibv_gid* gid) {
  return next->qp_detach(of(qp).next, gid);
}

int qp_post_recv(uiwarp_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Qp& qp = of(handle);
  if (const int error = failing(Event::kPostRecv, qp)) {
    if (bad) *bad = wr;
    return error;
  }
  return next->qp_post_recv(qp.next, wr, bad);
}

}  // namespace wrap
}  // namespace uiw::faults
