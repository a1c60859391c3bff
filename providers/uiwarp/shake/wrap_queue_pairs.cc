// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs, as far as their completions are concerned.
#include <cerrno>
#include <utility>

#include "core/tell_dropped.h"
#include "shake/wraps.h"

namespace uiw::shake {
namespace {

void forget_completions(Qp& qp) {
  {
    const std::lock_guard lock(qp.send_cq->mutex);
    qp.send_cq->completions.forget(qp.sends);
  }
  std::vector<uint64_t> receives;
  {
    const std::lock_guard lock(qp.recv_cq->mutex);
    receives = qp.recv_cq->completions.forget(qp.receives);
  }
  core::tell_dropped(qp.number, receives);
}

void begin_anew(Qp& qp) {
  forget_completions(qp);
  const std::lock_guard lock(qp.mutex);
  qp.send_places.clear(qp.sends.given());
  qp.receive_places.clear(qp.receives.given());
}

void leave(Qp& qp) {
  forget_completions(qp);
  for (Cq* const cq : {qp.send_cq, qp.recv_cq}) {
    const std::lock_guard lock(cq->mutex);
    // Its number may be another one's by now.
    const auto found = cq->qps.find(qp.number);
    if (found != cq->qps.end() && found->second == &qp) cq->qps.erase(found);
  }
}

// Null: it is not of this process.
std::unique_ptr<Qp> extract(Process& process, const uiwarp_qp* handle) {
  const std::lock_guard lock(process.mutex);
  auto node = process.qps.extract(handle);
  return node ? std::move(node.mapped()) : nullptr;
}

void insert(Process& process, const uiwarp_qp* handle, std::unique_ptr<Qp> qp) {
  const std::lock_guard lock(process.mutex);
  process.qps[handle] = std::move(qp);
}

}  // namespace

namespace wrap {

int qp_create(uiwarp_pd* pd, uiwarp_qp_init* init, uiwarp_qp** qp, uint32_t* qp_num) {
  Process* const process = this_process();
  if (!process) return ENOMEM;
  uiwarp_qp_init inner = *init;
  inner.send_cq = of(init->send_cq).next;
  inner.recv_cq = of(init->recv_cq).next;
  if (const int error = next->qp_create(pd, &inner, qp, qp_num)) return error;
  init->cap = inner.cap;
  auto ours = std::make_unique<Qp>(++process->last_qp);
  ours->number = *qp_num;
  ours->signal_all = init->sq_sig_all != 0;
  ours->srq = init->srq;
  ours->send_places.set_depth(inner.cap.max_send_wr);
  ours->receive_places.set_depth(inner.cap.max_recv_wr);
  ours->send_cq = &of(init->send_cq);
  ours->recv_cq = &of(init->recv_cq);
  for (Cq* const cq : {ours->send_cq, ours->recv_cq}) {
    const std::lock_guard lock(cq->mutex);
    cq->qps[ours->number] = ours.get();
  }
  insert(*process, *qp, std::move(ours));
  return 0;
}

// Another thread's queue pair may get the handle, and the number, before this returns.
int qp_destroy(uiwarp_qp* handle, uint32_t* async_events) {
  Process* const process = this_process();
  std::unique_ptr<Qp> qp = process ? extract(*process, handle) : nullptr;
  const int error = next->qp_destroy(handle, async_events);
  if (!qp) return error;
  if (error)
    insert(*process, handle, std::move(qp));
  else
    leave(*qp);
  return error;
}

int qp_modify(uiwarp_qp* handle, const ibv_qp_attr* attr, int mask) {
  const int error = next->qp_modify(handle, attr, mask);
  if (error || !(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RESET) return error;
  // It begins anew.
  if (Process* const process = this_process()) {
    const std::lock_guard lock(process->mutex);
    const auto found = process->qps.find(handle);
    if (found != process->qps.end()) begin_anew(*found->second);
  }
  return 0;
}

}  // namespace wrap
}  // namespace uiw::shake
