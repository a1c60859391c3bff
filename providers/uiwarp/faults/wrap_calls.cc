// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Calls that are counted for the process, and know no object of ours.
#include "faults/wraps.h"

namespace uiw::faults::wrap {

int context_open(const uiwarp_device* device, uint64_t command, uiwarp_context** context,
                 int* async_fd) {
  if (const int error = failing(Event::kOpenDevice)) return error;
  const int error = next->context_open(device, command, context, async_fd);
  if (error) return error;
  device_is_open();
  start_clock();
  listen_for_changes();
  return 0;
}

int query_device(uiwarp_context* context, ibv_device_attr_ex* attr, size_t size) {
  if (const int error = failing(Event::kQueryDevice)) return error;
  return next->query_device(context, attr, size);
}

int query_port(uiwarp_context* context, uint8_t port, ibv_port_attr* attr) {
  if (const int error = failing(Event::kQueryPort)) return error;
  return next->query_port(context, port, attr);
}

int pd_alloc(uiwarp_context* context, uiwarp_pd** pd) {
  if (const int error = failing(Event::kAllocPd)) return error;
  return next->pd_alloc(context, pd);
}

int mr_reg(uiwarp_pd* pd, void* addr, size_t length, uint64_t iova, int access, uiwarp_mr** mr,
           uint32_t* lkey, uint32_t* rkey) {
  if (const int error = failing(Event::kRegMr)) return error;
  return next->mr_reg(pd, addr, length, iova, access, mr, lkey, rkey);
}

int mr_rereg(uiwarp_mr* mr, int flags, uiwarp_pd* pd, void* addr, size_t length, int access,
             uint32_t* lkey, uint32_t* rkey) {
  if (const int error = failing(Event::kReregMr)) return error;
  return next->mr_rereg(mr, flags, pd, addr, length, access, lkey, rkey);
}

int mw_alloc(uiwarp_pd* pd, int type, uiwarp_mw** mw, uint32_t* rkey) {
  if (const int error = failing(Event::kAllocMw)) return error;
  return next->mw_alloc(pd, type, mw, rkey);
}

int ah_create(uiwarp_pd* pd, const ibv_ah_attr* attr, uiwarp_ah** ah) {
  if (const int error = failing(Event::kCreateAh)) return error;
  return next->ah_create(pd, attr, ah);
}

int srq_create(uiwarp_pd* pd, ibv_srq_attr* attr, void* user, uiwarp_srq** srq) {
  if (const int error = failing(Event::kCreateSrq)) return error;
  return next->srq_create(pd, attr, user, srq);
}

int srq_modify(uiwarp_srq* srq, ibv_srq_attr* attr, int mask) {
  if (const int error = failing(Event::kModifySrq)) return error;
  return next->srq_modify(srq, attr, mask);
}

int srq_post_recv(uiwarp_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (const int error = failing(Event::kPostSrqRecv)) {
    if (bad) *bad = wr;
    return error;
  }
  return next->srq_post_recv(srq, wr, bad);
}

}  // namespace uiw::faults::wrap
