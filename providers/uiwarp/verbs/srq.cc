// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/srq.h"

#include <cerrno>
#include <new>

#include "queue/post_refusal.h"

using namespace uiw;
using device::Limits;

void uiwarp_srq::on_srq_limit() {
  async_events.fetch_add(1, std::memory_order_relaxed);
  pd->context->async.send(events, IBV_EVENT_SRQ_LIMIT_REACHED);
}

int uiwarp_srq_create(uiwarp_pd* pd, ibv_srq_attr* attr, void* user, uiwarp_srq** srq) {
  if (const int error = verbs::check_usable(*pd)) return error;
  core::Told& told = pd->context->told.srq;
  if (attr->max_wr == 0 || attr->max_wr > Limits::kMaxSrqWr)
    return core::refuse(told, EINVAL,
                        "ibv_create_srq: max_wr is %u, it has to be from 1 to %u "
                        "(ibv_query_device: max_srq_wr)",
                        attr->max_wr, Limits::kMaxSrqWr);
  if (attr->max_sge > Limits::kMaxSge)
    return core::refuse(told, EINVAL,
                        "ibv_create_srq: max_sge is %u, the limit is %u (ibv_query_device: "
                        "max_srq_sge)",
                        attr->max_sge, Limits::kMaxSge);
  std::unique_ptr<uiwarp_srq> made(new (std::nothrow) uiwarp_srq(*pd));
  if (!made) return ENOMEM;
  made->events.set_element(reinterpret_cast<uintptr_t>(user));
  made->queue =
      queue::ReceiveQueue::create(attr->max_wr, attr->max_sge, queue::ReceiveQueue::Takers::kMany);
  if (!made->queue) return ENOMEM;
  made->queue->count_in(made->counters->posted_receives);
  made->counters->capacity.set(made->queue->depth());
  if (!pd->context->srqs.take(Limits::kMaxSrq))
    return core::refuse(told, ENOMEM,
                        "ibv_create_srq: the device has %u shared receive queues, its limit "
                        "(ibv_query_device: max_srq)",
                        Limits::kMaxSrq);
  verbs::hold(*pd, verbs::User::kSharedReceiveQueue);
  *srq = made.release();
  return 0;
}

int uiwarp_srq_modify(uiwarp_srq* srq, ibv_srq_attr* attr, int mask) {
  if (srq->pd->context->in_child()) return core::refuse_in_child();
  if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
    return core::refuse(srq->told, EINVAL,
                        "ibv_modify_srq: srq_attr_mask 0x%x has other bits than IBV_SRQ_MAX_WR and "
                        "IBV_SRQ_LIMIT",
                        static_cast<unsigned>(mask));
  const auto limit_too_high = [&](uint32_t depth) {
    return core::refuse(srq->told, EINVAL,
                        "ibv_modify_srq: srq_limit is %u, the queue has %u receives (max_wr)",
                        attr->srq_limit, depth);
  };
  if (mask & IBV_SRQ_MAX_WR) {
    if (attr->max_wr == 0 || attr->max_wr > Limits::kMaxSrqWr)
      return core::refuse(srq->told, EINVAL,
                          "ibv_modify_srq: max_wr is %u, it has to be from 1 to %u "
                          "(ibv_query_device: max_srq_wr)",
                          attr->max_wr, Limits::kMaxSrqWr);
    if (mask & IBV_SRQ_LIMIT && attr->srq_limit > attr->max_wr) return limit_too_high(attr->max_wr);
    if (const int error = srq->queue->resize(attr->max_wr))
      return error == EINVAL
                 ? core::refuse(srq->told, error,
                                "ibv_modify_srq: max_wr is %u, but more receives wait, or the "
                                "limit that is armed is higher",
                                attr->max_wr)
                 : error;
    srq->counters->capacity.set(srq->queue->depth());
  }
  if ((mask & IBV_SRQ_LIMIT) && srq->queue->arm_limit(attr->srq_limit) != 0)
    return limit_too_high(srq->queue->depth());
  return 0;
}

int uiwarp_srq_query(uiwarp_srq* srq, ibv_srq_attr* attr) {
  if (srq->pd->context->in_child()) return core::refuse_in_child();
  attr->max_wr = srq->queue->depth();
  attr->max_sge = srq->queue->max_sge();
  attr->srq_limit = srq->queue->limit();
  return 0;
}

int uiwarp_srq_destroy(uiwarp_srq* srq, uint32_t* async_events) {
  if (srq->users.any()) return verbs::refuse_busy(srq->told, "ibv_destroy_srq", srq->users);
  uiwarp_pd* pd = srq->pd;
  if (pd->context->in_child()) {
    *async_events = UIWARP_NO_EVENTS;
    pd->context->srqs.give();
    verbs::let_go(*pd, verbs::User::kSharedReceiveQueue);
    return 0;
  }
  *async_events = srq->async_events.load(std::memory_order_relaxed);
  if (*async_events > 0) *async_events -= pd->context->async.purge(srq->events);
  delete srq;
  pd->context->srqs.give();
  verbs::let_go(*pd, verbs::User::kSharedReceiveQueue);
  return 0;
}

uint32_t uiwarp_srq_room(uiwarp_srq* srq) {
  return srq->queue->room();
}

int uiwarp_srq_post_recv(uiwarp_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const int error = srq->pd->context->in_child() ? core::refuse_in_child() : srq->queue->post(wr);
  if (error) *bad = wr;
  if (error == EINVAL || error == ENOMEM) queue::explain(srq->told, *srq->queue, *wr, error);
  return error;
}
