// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs, and the end of shared receive queues.
#include <cerrno>

#include "core/clock.h"
#include "trace/wraps.h"

namespace uiw::trace {
namespace wrap {

int context_open(const uiwarp_device* device, uint64_t command, uiwarp_context** context,
                 int* async_fd) {
  if (open_ring() != 0) return EINVAL;
  return next->context_open(device, command, context, async_fd);
}

int qp_create(uiwarp_pd* pd, uiwarp_qp_init* init, uiwarp_qp** qp, uint32_t* qp_num) {
  uiwarp_qp* made = nullptr;
  const core::Nanoseconds time = core::now();
  if (const int error = next->qp_create(pd, init, &made, qp_num)) return error;
  auto* const ours = new Qp;
  ours->next = made;
  ours->number = *qp_num;
  ours->signal_all = init->sq_sig_all != 0;
  Record record = record_of(Kind::kCreated, ours->number, time);
  record.opcode = static_cast<uint8_t>(init->qp_type);
  record.work.queue = reinterpret_cast<uintptr_t>(init->srq);
  write(record);
  *qp = reinterpret_cast<uiwarp_qp*>(ours);
  return 0;
}

int qp_destroy(uiwarp_qp* handle, uint32_t* async_events) {
  Qp* const qp = &of(handle);
  const core::Nanoseconds time = core::now();
  if (const int error = next->qp_destroy(qp->next, async_events)) return error;
  // With the time when it began: its number may be another one's by now.
  write(record_of(Kind::kDestroyed, qp->number, time));
  delete qp;
  return 0;
}

int srq_destroy(uiwarp_srq* srq, uint32_t* async_events) {
  const core::Nanoseconds time = core::now();
  if (const int error = next->srq_destroy(srq, async_events)) return error;
  Record record = record_of(Kind::kSharedGone, 0, time);
  record.work.queue = reinterpret_cast<uintptr_t>(srq);
  write(record);
  return 0;
}

int qp_modify(uiwarp_qp* handle, const ibv_qp_attr* attr, int mask) {
  const Qp& qp = of(handle);
  const core::Nanoseconds time = core::now();
  const int error = next->qp_modify(qp.next, attr, mask);
  if (error || !(mask & IBV_QP_STATE)) return error;
  Record record = record_of(Kind::kState, qp.number, time);
  record.opcode = static_cast<uint8_t>(attr->qp_state);
  write(record);
  return 0;
}

int qp_query(uiwarp_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  return next->qp_query(of(qp).next, attr, mask, init);
}

void qp_break(uiwarp_qp* qp) {
  next->qp_break(of(qp).next);
}

void qp_deafen(uiwarp_qp* qp, int deaf) {
  next->qp_deafen(of(qp).next, deaf);
}

int64_t qp_patience(uiwarp_qp* qp) {
  return next->qp_patience(of(qp).next);
}

int qp_attach(uiwarp_qp* qp, const ibv_gid* gid) {
  return next->qp_attach(of(qp).next, gid);
}

int qp_detach(uiwarp_qp* qp, const ibv_gid* gid) {
  return next->qp_detach(of(qp).next, gid);
}

}  // namespace wrap
}  // namespace uiw::trace
