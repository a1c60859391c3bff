// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/srq.h"

#include <cerrno>
#include <new>

using namespace uiw;
using device::Limits;

void uiwarp_srq::on_srq_limit() {
  async_events.fetch_add(1, std::memory_order_relaxed);
  pd->context->async.send(events, IBV_EVENT_SRQ_LIMIT_REACHED);
}

int uiwarp_srq_create(uiwarp_pd* pd, ibv_srq_attr* attr, void* user, uiwarp_srq** srq) {
  if (pd->context->in_child()) return ENODEV;
  if (attr->max_wr == 0 || attr->max_wr > Limits::kMaxSrqWr || attr->max_sge > Limits::kMaxSge)
    return EINVAL;
  std::unique_ptr<uiwarp_srq> made(new (std::nothrow) uiwarp_srq);
  if (!made) return ENOMEM;
  made->pd = pd;
  made->events.set_element(reinterpret_cast<uintptr_t>(user));
  made->queue =
      queue::ReceiveQueue::create(attr->max_wr, attr->max_sge, queue::ReceiveQueue::Takers::kMany);
  if (!made->queue) return ENOMEM;
  if (!pd->context->srqs.take(Limits::kMaxSrq)) return ENOMEM;
  pd->users.fetch_add(1, std::memory_order_relaxed);
  *srq = made.release();
  return 0;
}

int uiwarp_srq_modify(uiwarp_srq* srq, ibv_srq_attr* attr, int mask) {
  if (srq->pd->context->in_child()) return ENODEV;
  if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) return EINVAL;
  if (mask & IBV_SRQ_MAX_WR) {
    if (attr->max_wr == 0 || attr->max_wr > Limits::kMaxSrqWr) return EINVAL;
    if (mask & IBV_SRQ_LIMIT && attr->srq_limit > attr->max_wr) return EINVAL;
    if (const int error = srq->queue->resize(attr->max_wr)) return error;
  }
  if (mask & IBV_SRQ_LIMIT) return srq->queue->arm_limit(attr->srq_limit);
  return 0;
}

int uiwarp_srq_query(uiwarp_srq* srq, ibv_srq_attr* attr) {
  if (srq->pd->context->in_child()) return ENODEV;
  attr->max_wr = srq->queue->depth();
  attr->max_sge = srq->queue->max_sge();
  attr->srq_limit = srq->queue->limit();
  return 0;
}

int uiwarp_srq_destroy(uiwarp_srq* srq, uint32_t* async_events) {
  if (srq->users.load(std::memory_order_acquire) > 0) return EBUSY;
  uiwarp_pd* pd = srq->pd;
  if (pd->context->in_child()) {
    *async_events = UIWARP_NO_EVENTS;
    pd->context->srqs.give();
    pd->users.fetch_sub(1, std::memory_order_release);
    return 0;
  }
  *async_events = srq->async_events.load(std::memory_order_relaxed);
  if (*async_events > 0) *async_events -= pd->context->async.purge(srq->events);
  delete srq;
  pd->context->srqs.give();
  pd->users.fetch_sub(1, std::memory_order_release);
  return 0;
}

int uiwarp_srq_post_recv(uiwarp_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const int error = srq->pd->context->in_child() ? ENODEV : srq->queue->post(wr);
  if (error) *bad = wr;
  return error;
}
