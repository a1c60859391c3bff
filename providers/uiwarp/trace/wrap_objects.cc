// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs, and what the stack tells of them.
#include <netinet/in.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/clock.h"
#include "core/gid.h"
#include "trace/wraps.h"

namespace uiw::trace {
namespace {

uint16_t port_of(const sockaddr_storage& address) {
  // At the same place in sockaddr_in.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

}  // namespace

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

int qp_attach(uiwarp_qp* qp, const ibv_gid* gid) {
  return next->qp_attach(of(qp).next, gid);
}

int qp_detach(uiwarp_qp* qp, const ibv_gid* gid) {
  return next->qp_detach(of(qp).next, gid);
}

void connected(uint32_t qp_num, const sockaddr_storage* local, const sockaddr_storage* peer) {
  Record record = record_of(Kind::kConnected, qp_num, core::now());
  const in6_addr from = core::gid_of(*local), to = core::gid_of(*peer);
  record.addresses = {};
  std::memcpy(record.addresses.local, &from, sizeof from);
  std::memcpy(record.addresses.peer, &to, sizeof to);
  record.addresses.local_port = port_of(*local);
  record.addresses.peer_port = port_of(*peer);
  write(record);
  next->connected(qp_num, local, peer);
}

void receive_awaited(uint32_t qp_num, uint64_t nanoseconds, int gave_up) {
  Record record = record_of(Kind::kAwaited, qp_num, core::now());
  record.work.bytes = nanoseconds;
  write(record);
  next->receive_awaited(qp_num, nanoseconds, gave_up);
}

int peer_refused(uint32_t qp_num, uint32_t rkey, uint64_t address, uint64_t length) {
  Record record = record_of(Kind::kPeerRefused, qp_num, core::now());
  record.work.bytes = length;
  write(record);
  return next->peer_refused(qp_num, rkey, address, length);
}

void cm_event_taken(uint64_t uid, uint32_t event, int status) {
  Record record = record_of(Kind::kCmEvent, 0, core::now());
  record.opcode = static_cast<uint8_t>(event);
  record.work.wr_id = uid;
  record.work.error = static_cast<uint32_t>(status);
  write(record);
  next->cm_event_taken(uid, event, status);
}

}  // namespace wrap
}  // namespace uiw::trace
