// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/cq.h"

#include <cerrno>
#include <new>

#include "verbs/affinity.h"
#include "verbs/pd.h"

using namespace uiw;
using device::Limits;

void uiwarp_cq::on_completion_event() {
  if (!channel) return;
  completion_events.fetch_add(1, std::memory_order_relaxed);
  channel->pipe.send(events, 0);
}

void uiwarp_cq::on_overflow() {
  async_events.fetch_add(1, std::memory_order_relaxed);
  core::explain(told,
                "a completion queue of %u entries has overflowed: more completions waited than it "
                "has room for, and one is lost; its queue pairs end (IBV_EVENT_CQ_ERR). Ask "
                "ibv_create_cq for max_send_wr + max_recv_wr of all its queue pairs, or poll it "
                "more often",
                entries.load(std::memory_order_relaxed));
  context->async.send(errors, IBV_EVENT_CQ_ERR);
  const std::lock_guard lock(mutex_);
  failed_ = true;
  for (verbs::CqMember* member = members_; member; member = member->next) member->on_cq_error();
}

bool uiwarp_cq::join(verbs::CqMember& member) {
  const std::lock_guard lock(mutex_);
  if (failed_) return false;
  member.next = members_;
  if (members_) members_->previous = &member;
  members_ = &member;
  return true;
}

void uiwarp_cq::leave(verbs::CqMember& member) {
  const std::lock_guard lock(mutex_);
  (member.previous ? member.previous->next : members_) = member.next;
  if (member.next) member.next->previous = member.previous;
}

namespace {

void let_go_of_domain(const uiwarp_cq& cq) {
  if (cq.parent_domain) verbs::let_go(*cq.parent_domain, verbs::User::kCompletionQueue);
}

}  // namespace

int uiwarp_cq_create(uiwarp_context* context, int cqe, int channel_fd, int comp_vector,
                     uiwarp_pd* parent_domain, void* user, uiwarp_cq** cq, int* actual) {
  if (context->in_child()) return core::refuse_in_child();
  core::Told& told = context->told.cq;
  if (cqe < 1 || static_cast<uint32_t>(cqe) > Limits::kMaxCqe)
    return core::refuse(told, EINVAL,
                        "ibv_create_cq: cqe is %d, it has to be from 1 to %u (ibv_query_device: "
                        "max_cqe)",
                        cqe, Limits::kMaxCqe);
  if (comp_vector < 0 || static_cast<uint32_t>(comp_vector) >= verbs::engine_count())
    return core::refuse(told, EINVAL,
                        "ibv_create_cq: comp_vector is %d, it has to be below %u "
                        "(num_comp_vectors of the ibv_context)",
                        comp_vector, verbs::engine_count());
  // Only a parent domain of this context will do: a queue does not belong to a protection domain.
  if (parent_domain && (parent_domain->context != context || !parent_domain->parent_of))
    return core::refuse(told, EINVAL,
                        "ibv_create_cq: parent_domain is none, or that of another ibv_context "
                        "(ibv_alloc_parent_domain)");
  std::unique_ptr<uiwarp_cq> made(new (std::nothrow) uiwarp_cq(*context));
  if (!made) return ENOMEM;
  made->context = context;
  made->events.set_element(reinterpret_cast<uintptr_t>(user));
  made->errors.set_element(reinterpret_cast<uintptr_t>(user));
  made->vector = static_cast<uint32_t>(comp_vector);
  made->queue = queue::CompletionQueue::create(static_cast<uint32_t>(cqe), made.get());
  if (!made->queue) return ENOMEM;
  made->queue->count_in(*made->counters);
  if (!context->cqs.take(Limits::kMaxCq))
    return core::refuse(told, ENOMEM,
                        "ibv_create_cq: the device has %u completion queues, its limit "
                        "(ibv_query_device: max_cq)",
                        Limits::kMaxCq);
  if (channel_fd >= 0) {
    auto channel = context->channels.acquire(channel_fd);
    if (!channel) {
      context->cqs.give();
      return channel.error();
    }
    made->channel = *channel;
  }
  made->entries = made->queue->capacity();
  made->parent_domain = parent_domain;
  if (parent_domain) verbs::hold(*parent_domain, verbs::User::kCompletionQueue);
  *actual = static_cast<int>(made->queue->capacity());
  *cq = made.release();
  return 0;
}

int uiwarp_cq_destroy(uiwarp_cq* cq, uint32_t* comp_events, uint32_t* async_events) {
  if (cq->users.any()) return verbs::refuse_busy(cq->told, "ibv_destroy_cq", cq->users);
  uiwarp_context* context = cq->context;
  if (context->in_child()) {
    *comp_events = *async_events = UIWARP_NO_EVENTS;
    let_go_of_domain(*cq);
    context->cqs.give();
    return 0;
  }
  *comp_events = cq->completion_events.load(std::memory_order_relaxed);
  if (cq->channel) {
    *comp_events -= cq->channel->pipe.purge(cq->events);
    context->channels.release(cq->channel);
  }
  *async_events = cq->async_events.load(std::memory_order_relaxed);
  if (*async_events > 0) *async_events -= context->async.purge(cq->errors);
  verbs::drop_affinity(*cq);
  let_go_of_domain(*cq);
  delete cq;
  context->cqs.give();
  return 0;
}

void uiwarp_cq_single_threaded(uiwarp_cq*) {}

int uiwarp_cq_resize(uiwarp_cq* cq, int cqe, int* actual) {
  if (cq->context->in_child()) return core::refuse_in_child();
  if (cqe < 1 || static_cast<uint32_t>(cqe) > Limits::kMaxCqe)
    return core::refuse(cq->told, EINVAL,
                        "ibv_resize_cq: cqe is %d, it has to be from 1 to %u (ibv_query_device: "
                        "max_cqe)",
                        cqe, Limits::kMaxCqe);
  if (const int error = cq->queue->resize(static_cast<uint32_t>(cqe)))
    return error == EINVAL
               ? core::refuse(cq->told, error,
                              "ibv_resize_cq: more completions than %d wait: poll them first", cqe)
               : error;
  cq->entries = cq->queue->capacity();
  *actual = static_cast<int>(cq->entries);
  return 0;
}

int uiwarp_cq_poll(uiwarp_cq* cq, int count, ibv_wc* wc) {
  if (count < 0) return -core::refuse(cq->told, EINVAL, "ibv_poll_cq: num_entries is %d", count);
  return cq->queue->poll(count, wc);
}

void uiwarp_cq_wake(uiwarp_cq* cq) {
  if (!cq->context->in_child()) cq->queue->wake();
}

void uiwarp_cq_overrun(uiwarp_cq* cq) {
  if (!cq->context->in_child()) cq->queue->overrun();
}

int uiwarp_cq_has_overflowed(uiwarp_cq* cq) {
  return cq->queue->overflowed() ? UIWARP_OVERFLOWED : 0;
}

uint32_t uiwarp_cq_waiting(uiwarp_cq* cq, uint32_t* messages) {
  const queue::CompletionQueue::Waiting waiting = cq->queue->waiting();
  *messages = waiting.messages;
  return waiting.all;
}

int uiwarp_cq_arm(uiwarp_cq* cq, int solicited_only) {
  if (cq->context->in_child()) return core::refuse_in_child();
  cq->queue->arm(solicited_only != 0);
  return 0;
}
