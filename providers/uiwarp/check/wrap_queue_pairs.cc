// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs and shared receive queues but for what is posted to them.
#include <cerrno>
#include <mutex>

#include "check/destroyed.h"
#include "check/forks.h"
#include "check/text.h"
#include "check/thread_rules.h"
#include "check/unread_events.h"
#include "check/wraps.h"
#include "core/injected.h"

namespace uiw::check {

ibv_qp_state state_of(const Qp& qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  const core::OwnCalls own;
  return next->qp_query(qp.next, &attr, IBV_QP_STATE, &init) == 0 ? attr.qp_state : IBV_QPS_ERR;
}

namespace {

void promise(Cq& cq, const Qp& qp, int64_t depth) {
  const int64_t promised = cq.promised.fetch_add(depth) + depth;
  if (!wants.hints || depth <= 0 || promised <= cq.entries) return;
  const Objects::Entry queue = Objects::instance().find(&cq);
  Report::instance().add(
      {Kind::kCqTooSmall,
       queue.name,
       {},
       text("the queue pairs that complete there may have %lld requests outstanding, with %s",
            static_cast<long long>(promised), qp.name().c_str()),
       {{"created", queue.created}, {"queue pair created", qp.created()}},
       true});
}

void promise_all(Qp& qp, int sign) {
  const int64_t sends = sign * int64_t{qp.cap.max_send_wr};
  const int64_t receives = qp.srq ? 0 : sign * int64_t{qp.cap.max_recv_wr};
  if (qp.send_cq == qp.recv_cq) return promise(*qp.send_cq, qp, sends + receives);
  promise(*qp.send_cq, qp, sends);
  promise(*qp.recv_cq, qp, receives);
}

void follow(Qp& qp, const ibv_qp_attr& attr, int mask, const Stack& called) {
  std::vector<MoveFault> faults;
  {
    const std::lock_guard lock(qp.mutex);
    faults = qp.moves.made(attr, mask, called);
  }
  for (const MoveFault& each : faults)
    Report::instance().add({each.fault.kind,
                            qp.name(),
                            {},
                            each.fault.what,
                            {{"called", each.called}, {"queue pair created", qp.created()}}});
}

// What is signaled and was not polled. Programs end so that need no more of their last requests.
void hint_at_outstanding(Qp& qp) {
  Unpolled all;
  {
    const std::lock_guard lock(qp.mutex);
    if (!qp.sends.is_sure()) return;
    all = unpolled_of(qp.sends, [](const Request&) { return true; });
  }
  const auto& [wr_ids, posted] = all;
  if (wr_ids.empty()) return;
  Stack here;
  capture(here);
  Report::instance().add(
      {Kind::kDestroyedInUse,
       qp.name(),
       wr_ids.front(),
       "destroyed with requests whose completions were not polled: " + list_of(wr_ids),
       {{"destroyed", here}, {"posted", posted}, {"queue pair created", qp.created()}},
       true});
}

// From here on no poller finds it. What one has been given already is still to be taken out of a
// shared receive queue.
void unlist(Context& context, const Qp& qp) {
  const std::lock_guard lock(context.mutex);
  context.qps.erase(qp.number);
  if (!qp.srq) return;
  context.departed.push_front({qp.number, qp.srq});
  if (context.departed.size() > Departed::kMost) context.departed.pop_back();
}

void list_again(Context& context, Qp& qp) {
  const std::lock_guard lock(context.mutex);
  context.qps[qp.number] = &qp;
  std::erase_if(context.departed, [&](const Departed& each) { return each.number == qp.number; });
}

}  // namespace

namespace wrap {

int qp_create(uiwarp_pd* pd, uiwarp_qp_init* init, uiwarp_qp** qp, uint32_t* qp_num) {
  for (const void* const given :
       {static_cast<const void*>(pd), static_cast<const void*>(init->send_cq),
        static_cast<const void*>(init->recv_cq), static_cast<const void*>(init->srq)})
    if (is_gone(given, "ibv_create_qp", As::kGiven)) return EINVAL;
  is_inherited(*of(pd).context, &of(pd), "ibv_create_qp");
  uiwarp_qp_init inner = *init;
  inner.send_cq = next_of<Cq>(init->send_cq);
  inner.recv_cq = next_of<Cq>(init->recv_cq);
  inner.srq = next_of<Srq>(init->srq);
  auto* const made = new Qp;
  if (const int error = next->qp_create(of(pd).next, &inner, &made->next, qp_num)) {
    delete made;
    return error;
  }
  made->pd = &of(pd);
  made->send_cq = &of(init->send_cq);
  made->recv_cq = &of(init->recv_cq);
  made->srq = init->srq ? &of(init->srq) : nullptr;
  made->number = *qp_num;
  made->user = init->user;
  made->type = static_cast<ibv_qp_type>(init->qp_type);
  made->signal_all = init->sq_sig_all != 0;
  // Who was given more than asked would not find out what other devices refuse.
  inner.cap.max_inline_data = init->cap.max_inline_data;
  made->cap = init->cap = inner.cap;
  made->sends = Requests(Requests::Of::kSends, made->cap.max_send_wr, made->cap.max_send_sge);
  made->receives = Requests(Requests::Of::kReceives, made->cap.max_recv_wr, made->cap.max_recv_sge);
  Context& context = *made->pd->context;
  Objects::instance().add(context, made, made->name(),
                          {made->pd, made->send_cq, made->recv_cq, made->srq});
  promise_all(*made, 1);
  {
    const std::lock_guard lock(context.mutex);
    context.qps[made->number] = made;
  }
  listen_for(*made);
  *qp = handle_of(made);
  return 0;
}

int qp_destroy(uiwarp_qp* handle, uint32_t* async_events) {
  Qp* const qp = &of(handle);
  if (is_gone(qp, "ibv_destroy_qp")) return EINVAL;
  Context& context = *qp->pd->context;
  if (is_inherited(context, qp, "ibv_destroy_qp", Use::kDestroys))
    return next->qp_destroy(qp->next, async_events);
  end_life(qp->life, qp, "ibv_destroy_qp");
  stop_listening(*qp);
  unlist(context, *qp);
  report_open_section(*qp);
  if (wants.hints) hint_at_outstanding(*qp);
  hint_at_unread(context, qp, qp->user, "ibv_destroy_qp");
  if (const int error = next->qp_destroy(qp->next, async_events)) {
    if (error == EBUSY) report_busy("ibv_destroy_qp", qp, "by multicast groups it is attached to");
    qp->life.go_on();
    list_again(context, *qp);
    listen_for(*qp);
    return error;
  }
  forget(*qp);
  promise_all(*qp, -1);
  bury(qp);
  return 0;
}

int qp_modify(uiwarp_qp* handle, const ibv_qp_attr* attr, int mask) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, "ibv_modify_qp");
  if (!inside) return EINVAL;
  is_inherited(*qp.pd->context, &qp, "ibv_modify_qp");
  const int error = next->qp_modify(qp.next, attr, mask);
  if (!error && qp.type == IBV_QPT_RC && !qp.pd->context->foreign()) {
    Stack called;
    capture(called);
    follow(qp, *attr, mask, called);
  }
  // librdmacm moves those of rdma_cm, which iWARP's connection set-up takes further.
  if (!error && (mask & IBV_QP_STATE))
    qp.is_in_rtr = attr->qp_state == IBV_QPS_RTR && (mask & IBV_QP_DEST_QPN);
  if (!error && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
    const std::lock_guard lock(qp.mutex);
    qp.sends.clear();
    qp.receives.clear();
  }
  return error;
}

int qp_query(uiwarp_qp* handle, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  Qp& qp = of(handle);
  const Inside inside(qp.life, &qp, "ibv_query_qp");
  if (!inside) return EINVAL;
  const int error = next->qp_query(qp.next, attr, mask, init);
  if (!error) init->cap.max_inline_data = attr->cap.max_inline_data = qp.cap.max_inline_data;
  return error;
}

int qp_attach(uiwarp_qp* qp, const ibv_gid* gid) {
  if (is_gone(qp, "ibv_attach_mcast")) return EINVAL;
  is_inherited(*of(qp).pd->context, &of(qp), "ibv_attach_mcast");
  return next->qp_attach(of(qp).next, gid);
}

int qp_detach(uiwarp_qp* qp, const ibv_gid* gid) {
  if (is_gone(qp, "ibv_detach_mcast")) return EINVAL;
  return next->qp_detach(of(qp).next, gid);
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

int srq_create(uiwarp_pd* pd, ibv_srq_attr* attr, void* user, uiwarp_srq** srq) {
  if (is_gone(pd, "ibv_create_srq", As::kGiven)) return EINVAL;
  is_inherited(*of(pd).context, &of(pd), "ibv_create_srq");
  auto* const made = new Srq;
  if (const int error = next->srq_create(of(pd).next, attr, user, &made->next)) {
    delete made;
    return error;
  }
  made->pd = &of(pd);
  made->user = user;
  made->receives = Requests(Requests::Of::kReceives, attr->max_wr, attr->max_sge);
  Objects::instance().add(*made->pd->context, made, "shared receive queue", {made->pd});
  *srq = handle_of(made);
  return 0;
}

int srq_modify(uiwarp_srq* handle, ibv_srq_attr* attr, int mask) {
  Srq& srq = of(handle);
  if (is_gone(&srq, "ibv_modify_srq")) return EINVAL;
  const bool inherited = is_inherited(*srq.pd->context, &srq, "ibv_modify_srq");
  const int error = next->srq_modify(srq.next, attr, mask);
  if (error || inherited || !(mask & IBV_SRQ_MAX_WR)) return error;
  const std::lock_guard lock(srq.mutex);
  srq.receives.set_depth(attr->max_wr);
  return 0;
}

int srq_query(uiwarp_srq* srq, ibv_srq_attr* attr) {
  if (is_gone(srq, "ibv_query_srq")) return EINVAL;
  return next->srq_query(of(srq).next, attr);
}

uint32_t srq_room(uiwarp_srq* srq) {
  return next->srq_room(of(srq).next);
}

int srq_destroy(uiwarp_srq* handle, uint32_t* async_events) {
  Srq* const srq = &of(handle);
  if (is_gone(srq, "ibv_destroy_srq")) return EINVAL;
  if (is_inherited(*srq->pd->context, srq, "ibv_destroy_srq", Use::kDestroys))
    return next->srq_destroy(srq->next, async_events);
  end_life(srq->life, srq, "ibv_destroy_srq");
  hint_at_unread(*srq->pd->context, srq, srq->user, "ibv_destroy_srq");
  const int error = next->srq_destroy(srq->next, async_events);
  if (error) srq->life.go_on();
  if (error == EBUSY) report_busy("ibv_destroy_srq", srq, "by queue pairs");
  if (error) return error;
  {
    Context& context = *srq->pd->context;
    const std::lock_guard lock(context.mutex);
    std::erase_if(context.departed, [&](const Departed& each) { return each.srq == srq; });
  }
  bury(srq);
  return 0;
}

}  // namespace wrap
}  // namespace uiw::check
