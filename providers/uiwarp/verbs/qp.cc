// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Queue pairs: numbers, limits and references. session/ and datagram/ (verbs/ud.cc) do the rest.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "core/explain_of.h"
#include "core/log.h"
#include "core/qp_number.h"
#include "core/retry_count.h"
#include "core/verbs_names.h"
#include "device/face.h"
#include "queue/attribute_masks.h"
#include "verbs/affinity.h"
#include "verbs/peer_address.h"
#include "verbs/qp.h"
#include "verbs/ud.h"

using namespace uiw;
using device::Limits;
using verbs::User;

void verbs::fill(queue::QueuePairOptions& options, uiwarp_qp& qp, const uiwarp_qp_init& init) {
  options.qp_num = qp.registration.qp_num;
  options.pd = qp.pd->id;
  options.memory = &qp.pd->context->memory;
  options.send_cq = qp.send_cq->queue.get();
  options.recv_cq = qp.recv_cq->queue.get();
  options.events = &qp;
  if (qp.srq) {
    options.srq_pd = qp.srq->pd->id;
    options.srq = qp.srq->queue.get();
    options.srq_events = qp.srq;
  }
  options.cap = init.cap;
  options.signal_all = init.sq_sig_all != 0;
  qp.counters.emplace(counters::Kind::kQueuePair, qp.pd->context->device->name, options.qp_num);
  counters::Slot& slot = **qp.counters;
  slot.type = qp.qp_type;
  slot.send_cq = qp.send_cq->counters.index();
  slot.recv_cq = qp.recv_cq->counters.index();
  slot.srq = qp.srq ? qp.srq->counters.index() : 0;
  options.counters = &slot;
}

namespace {

core::Service service_of(ibv_qp_type type) {
  return type == IBV_QPT_UC ? core::Service::kUnreliable : core::Service::kReliable;
}

// A limit, and where a program can read it.
struct Limit {
  const char* what;
  uint32_t asked, most;
  const char* read_from;
};

// No verb reports the limit of inline data, so programs try larger and larger values until one
// fails (libfabric). That is no error of the program.
bool finds_out_inline(const uiwarp_context& context, const Limit& limit) {
  return limit.most == Limits::kMaxInline &&
         context.most_inline.load(std::memory_order_relaxed) > Limits::kLeastInline;
}

int check(uiwarp_pd* pd, const uiwarp_qp_init& init) {
  core::Told& told = pd->context->told.qp;
  const char* const type = core::name_of_type(init.qp_type);
  if (!pd->context->face->has(init.qp_type))
    return core::refuse(told, EOPNOTSUPP,
                        "ibv_create_qp: devices of the %s face have no queue pairs of %s type%s",
                        pd->context->face->name, type ? type : "that",
                        init.qp_type == IBV_QPT_UD || init.qp_type == IBV_QPT_UC
                            ? ": UIWARP_FACE=roce has them (uiwarp run --as roce)"
                            : " (doc/support.md)");
  const char* const null = !init.send_cq ? "send_cq" : !init.recv_cq ? "recv_cq" : nullptr;
  if (null) return core::refuse_of(null, told, EINVAL, "ibv_create_qp: %s is null", null);
  if (init.send_cq->context != pd->context || init.recv_cq->context != pd->context ||
      (init.srq && init.srq->pd->context != pd->context))
    return core::refuse(told, EINVAL,
                        "ibv_create_qp: the queues and the protection domain are of different "
                        "ibv_contexts (open the device once, and make all of it there), or one of "
                        "them was destroyed");
  const ibv_qp_cap& cap = init.cap;
  const Limit limits[] = {
      {"max_send_wr", cap.max_send_wr, Limits::kMaxQpWr, "ibv_query_device: max_qp_wr"},
      {"max_send_sge", cap.max_send_sge, Limits::kMaxSge, "ibv_query_device: max_sge"},
      {"max_inline_data", cap.max_inline_data, Limits::kMaxInline, "the most there is"},
      {"max_recv_wr", cap.max_recv_wr, Limits::kMaxQpWr, "ibv_query_device: max_qp_wr"},
      {"max_recv_sge", cap.max_recv_sge, Limits::kMaxSge, "ibv_query_device: max_sge"},
  };
  // With an SRQ the receive half is ignored (ibv_create_qp).
  for (const Limit& limit : std::span(limits).first(init.srq ? 3 : 5))
    if (limit.asked > limit.most) {
      if (!finds_out_inline(*pd->context, limit) && told.first(limit.what))
        core::log(core::LogLevel::kWarn, "ibv_create_qp: %s is %u, the limit is %u (%s)",
                  limit.what, limit.asked, limit.most, limit.read_from);
      return EINVAL;
    }
  return 0;
}

// Checks the attributes for ibv_modify_qp, apart from the state. Attributes of InfiniBand's
// transport for which TCP has its own mechanisms (retries, timers, path MTU) may have any value and
// are ignored.
int check_attributes(uiwarp_qp& qp, const ibv_qp_attr& attr, int mask) {
  core::Told& told = qp.told;
  const uint32_t number = qp.registration.qp_num;
  const auto has_no = [&](int error, const char* what) {
    return core::refuse_of(what, told, error,
                           "ibv_modify_qp: queue pair 0x%06x: there is no %s here", number, what);
  };
  constexpr int kKnown = 2 * IBV_QP_RATE_LIMIT - 1;
  // The kernel's answer to unknown bits.
  if (mask & ~kKnown)
    return core::refuse(told, EOPNOTSUPP,
                        "ibv_modify_qp: queue pair 0x%06x: attr_mask 0x%x has bits that are not of "
                        "enum ibv_qp_attr_mask",
                        number, static_cast<unsigned>(mask));
  if (mask & IBV_QP_QKEY) return has_no(EINVAL, "Q_Key, which UD queue pairs have (IBV_QP_QKEY)");
  // No IBV_DEVICE_RESIZE_MAX_WR among the capabilities; no packet pacing.
  if (mask & IBV_QP_CAP) return has_no(EOPNOTSUPP, "resizing of queue pairs (IBV_QP_CAP)");
  if (mask & IBV_QP_RATE_LIMIT) return has_no(EOPNOTSUPP, "packet pacing (IBV_QP_RATE_LIMIT)");
  // The send queue drains only to close the connection (RFC 5040 6.2), which rdma_cm reports.
  if ((mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr.en_sqd_async_notify)
    return has_no(EOPNOTSUPP, "event of a drained send queue (IBV_QP_EN_SQD_ASYNC_NOTIFY)");
  if ((mask & IBV_QP_PKEY_INDEX) && attr.pkey_index != 0)
    return core::refuse(told, EINVAL,
                        "ibv_modify_qp: queue pair 0x%06x: pkey_index is %u, the port has P_Key 0 "
                        "only",
                        number, attr.pkey_index);
  const bool too_many = (mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > Limits::kMaxReads;
  const char* const which = too_many ? "max_rd_atomic" : "max_dest_rd_atomic";
  if (too_many ||
      ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > Limits::kMaxReads))
    return core::refuse_of(which, told, EINVAL,
                           "ibv_modify_qp: queue pair 0x%06x: %s is %u, the limit is %u "
                           "(ibv_query_device: max_qp_rd_atom)",
                           number, which, too_many ? attr.max_rd_atomic : attr.max_dest_rd_atomic,
                           Limits::kMaxReads);
  return 0;
}

void hold(uiwarp_qp& qp) {
  verbs::hold(*qp.pd, User::kQueuePair);
  qp.send_cq->users.add(User::kQueuePair);
  if (qp.recv_cq != qp.send_cq) qp.recv_cq->users.add(User::kQueuePair);
  if (qp.srq) qp.srq->users.add(User::kQueuePair);
}

bool join_queues(uiwarp_qp& qp) {
  if (!qp.send_cq->join(qp)) return false;
  if (qp.recv_cq == qp.send_cq || qp.recv_cq->join(qp.receive_member)) return true;
  qp.send_cq->leave(qp);
  return false;
}

void leave_queues(uiwarp_qp& qp) {
  if (qp.recv_cq != qp.send_cq) qp.recv_cq->leave(qp.receive_member);
  qp.send_cq->leave(qp);
}

void let_go(uiwarp_qp& qp) {
  if (qp.srq) qp.srq->users.remove(User::kQueuePair);
  if (qp.recv_cq != qp.send_cq) qp.recv_cq->users.remove(User::kQueuePair);
  qp.send_cq->users.remove(User::kQueuePair);
  verbs::let_go(*qp.pd, User::kQueuePair);
}

// For ibv_modify_qp to RTR by a program that has exchanged numbers and GIDs by itself.
int search_peer(uiwarp_qp& qp, const ibv_qp_attr& attr, int mask) {
  const uiwarp_context& context = *qp.pd->context;
  core::Result<rendezvous::PeerSearchParams> params = verbs::peer_search_params(
      *context.device, *context.face, qp.registration.qp_num, attr, mask, qp.told);
  if (!params) return params.error();
  params->service = service_of(qp.qp_type);
  int error = ENODEV;  // no engine, after fork()
  engine::Engine& engine = *context.engine;
  engine.run_sync([&] {
    error = EINVAL;
    if (qp.peer_search) return;  // a second search would replace the first at the listener
    auto search = rendezvous::PeerSearch::create(engine, *qp.session, *params);
    error = search ? qp.session->expect_peer() : search.error();
    if (error != 0) return;
    if (mask & IBV_QP_ACCESS_FLAGS) qp.session->allow(attr.qp_access_flags);
    qp.peer_search = std::move(*search);
    qp.peer_search->begin();
  });
  return error;
}

// Whether these are the attributes that rdma_cm gives for RTR (cm/rules.h): rdma_cm finds the peer
// then.
bool is_named_by_cm(const uiwarp_qp& qp, const ibv_qp_attr& attr, int mask) {
  return qp.qp_type == IBV_QPT_RC && (mask & IBV_QP_DEST_QPN) &&
         attr.dest_qp_num == core::kCmQpNumber &&
         qp.pd->context->face->cm == device::CmRules::kInfiniband;
}

int await_cm(uiwarp_qp& qp, const ibv_qp_attr& attr, int mask) {
  if (const int error = qp.session->expect_peer()) {
    // A queue pair that was not moved before its connection was established is in RTS already.
    ibv_qp_attr now;
    ibv_qp_init_attr init;
    if (qp.session->query(now, IBV_QP_STATE, init) != 0 || now.qp_state != IBV_QPS_RTS)
      return error;
  }
  return qp.session->modify(attr, mask & IBV_QP_ACCESS_FLAGS);
}

// The application may have written a value that is no state; it must not be read as an enum then.
bool is_state(const ibv_qp_state& state) {
  uint32_t value;
  static_assert(sizeof value == sizeof state);
  std::memcpy(&value, &state, sizeof value);
  return value <= IBV_QPS_ERR;
}

int check_mask(uiwarp_qp& qp, const ibv_qp_attr& attr, int mask) {
  ibv_qp_attr now;
  ibv_qp_init_attr init;
  if (const int error = qp.session->query(now, IBV_QP_STATE, init)) return error;
  return queue::check_mask(qp.told, qp.qp_type, now.qp_state,
                           mask & IBV_QP_STATE ? attr.qp_state : now.qp_state, mask);
}

// Explains a refused move to RTR, unless the queue pair is in INIT: then another reason was logged.
void tell_state(uiwarp_qp& qp) {
  ibv_qp_attr now;
  ibv_qp_init_attr init;
  if (qp.session->query(now, IBV_QP_STATE, init) != 0 || now.qp_state == IBV_QPS_INIT) return;
  core::explain(
      qp.told, "ibv_modify_qp: queue pair 0x%06x does not go from %s to RTR: move it to INIT first",
      qp.registration.qp_num, core::name_of(now.qp_state));
}

int create_session(uiwarp_qp& qp, const uiwarp_qp_init& init) {
  uiwarp_context* context = qp.pd->context;
  core::Result<engine::Engine*> engine = verbs::affinity_of(*init.recv_cq, *init.send_cq);
  if (!engine) return engine.error();
  if (!verbs::reserve_number(qp.registration)) return ENOMEM;
  session::QueuePairOptions options;
  verbs::fill(options, qp, init);
  options.service = service_of(qp.qp_type);
  options.busy_poller = &context->busy_poller;
  options.send_with_immediate = context->face->send_with_immediate;
  options.first_state = context->face->first_state;
  qp.session = session::QueuePair::create(**engine, options);
  if (qp.session) {
    qp.pd->domain->senders.add(qp.sending, *qp.session);
    return 0;
  }
  verbs::unregister(qp.registration);
  return ENOMEM;
}

// When this returns, nothing completes or raises events any more.
void end(uiwarp_qp& qp) {
  if (qp.datagrams) return verbs::end_datagrams(qp);
  // On the engine thread, where rdma_cm may be using a QP that it has just found.
  struct Hide final : engine::Task {
    uiwarp_qp* qp;
    void run() override {
      qp->peer_search.reset();
      verbs::publish(qp->registration, nullptr);
    }
  } hide;
  hide.qp = &qp;
  qp.session->say_farewell();
  qp.pd->domain->senders.begin_to_leave(qp.sending);
  qp.session->end_after(*qp.pd->context->engine, hide);
  qp.pd->domain->senders.leave(qp.sending);
  qp.session.reset();
  // Memory windows are bound to the number: it becomes another's when those of this one are gone.
  verbs::unregister(qp.registration);
}

}  // namespace

int uiwarp_qp_create(uiwarp_pd* pd, uiwarp_qp_init* init, uiwarp_qp** qp, uint32_t* qp_num) {
  if (const int error = verbs::check_usable(*pd)) return error;
  if (const int error = check(pd, *init)) return error;
  if (init->srq) init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
  uiwarp_context* context = pd->context;
  if (!context->qps.take(Limits::kMaxQp))
    return core::refuse(
        context->told.qp, ENOMEM,
        "ibv_create_qp: the device has %u queue pairs, its limit (ibv_query_device: "
        "max_qp)",
        Limits::kMaxQp);
  std::unique_ptr<uiwarp_qp> made(new (std::nothrow) uiwarp_qp);
  if (!made) {
    context->qps.give();
    return ENOMEM;
  }
  static_assert(Limits::kMaxInline == UIWARP_MAX_INLINE);
  // "greater than or equal to the values requested" (ibv_create_qp): at least one of everything.
  ibv_qp_cap& cap = init->cap;
  cap.max_send_wr = std::max(cap.max_send_wr, 1u);
  cap.max_send_sge = std::max(cap.max_send_sge, 1u);
  cap.max_inline_data = std::max(cap.max_inline_data, Limits::kLeastInline);
  if (cap.max_inline_data > context->most_inline.load(std::memory_order_relaxed))
    context->most_inline.store(cap.max_inline_data, std::memory_order_relaxed);
  made->pd = pd;
  made->send_cq = init->send_cq;
  made->recv_cq = init->recv_cq;
  made->srq = init->srq;
  made->qp_type = static_cast<ibv_qp_type>(init->qp_type);
  made->events.set_element(reinterpret_cast<uintptr_t>(init->user));
  const bool datagrams = init->qp_type == IBV_QPT_UD;
  int error = datagrams ? verbs::create_datagrams(*made, *init) : create_session(*made, *init);
  // A CQ that has lost completions is in error, and its queue pairs would be, too.
  if (error == 0 && !join_queues(*made)) {
    end(*made);
    error = core::refuse(context->told.qp, EINVAL,
                         "ibv_create_qp: a completion queue has overflowed (IBV_EVENT_CQ_ERR), and "
                         "takes no more queue pairs: destroy it and make a larger one");
  }
  if (error) {
    context->qps.give();
    return error;
  }
  hold(*made);
  if (!datagrams) verbs::publish(made->registration, made->session.get());
  *qp_num = made->registration.qp_num;
  core::log(core::LogLevel::kDebug, "queue pair 0x%06x: created, %s, on %s", *qp_num,
            core::name_of_type(init->qp_type), context->device->name.c_str());
  *qp = made.release();
  return 0;
}

int uiwarp_qp_destroy(uiwarp_qp* qp, uint32_t* async_events) {
  uiwarp_context* context = qp->pd->context;
  if (context->in_child()) {
    *async_events = UIWARP_NO_EVENTS;
    let_go(*qp);
    context->qps.give();
    return 0;
  }
  if (qp->users.any()) return verbs::refuse_busy(qp->told, "ibv_destroy_qp", qp->users);
  core::log(core::LogLevel::kDebug, "queue pair 0x%06x: destroyed by the program",
            qp->registration.qp_num);
  leave_queues(*qp);
  end(*qp);
  *async_events = qp->async_events.load(std::memory_order_relaxed);
  if (*async_events > 0) *async_events -= context->async.purge(qp->events);
  let_go(*qp);
  delete qp;
  context->qps.give();
  return 0;
}

int uiwarp_qp_modify(uiwarp_qp* qp, const ibv_qp_attr* attr, int mask) {
  if (qp->pd->context->in_child()) return core::refuse_in_child();
  if (((mask & IBV_QP_STATE) && !is_state(attr->qp_state)) ||
      ((mask & IBV_QP_CUR_STATE) && !is_state(attr->cur_qp_state)))
    return core::refuse(
        qp->told, EINVAL,
        "ibv_modify_qp: queue pair 0x%06x: %s is not one of enum ibv_qp_state: is "
        "the attribute initialised?",
        qp->registration.qp_num,
        (mask & IBV_QP_STATE) && !is_state(attr->qp_state) ? "qp_state" : "cur_qp_state");
  if (mask & IBV_QP_STATE)
    core::log(core::LogLevel::kDebug, "queue pair 0x%06x: the program moves it to %s",
              qp->registration.qp_num, core::name_of(attr->qp_state));
  if (qp->datagrams) return qp->datagrams->modify(*attr, mask);
  if (const int error = check_attributes(*qp, *attr, mask)) return error;
  if (const int error = check_mask(*qp, *attr, mask)) return error;
  const int target = mask & IBV_QP_STATE ? int{attr->qp_state} : -1;
  // First let the engine that makes connections do what rdma_accept() has posted to it: it must not
  // find a queue pair that was reset meanwhile.
  if (target == IBV_QPS_RESET) qp->pd->context->engine->run_sync([] {});
  if (mask & (IBV_QP_AV | IBV_QP_DEST_QPN)) {
    if (target != IBV_QPS_RTR)
      return core::refuse(
          qp->told, EINVAL,
          "ibv_modify_qp: queue pair 0x%06x: IBV_QP_AV and IBV_QP_DEST_QPN name the "
          "peer, which is done with the move from INIT to RTR",
          qp->registration.qp_num);
    const int error = is_named_by_cm(*qp, *attr, mask) ? await_cm(*qp, *attr, mask)
                                                       : search_peer(*qp, *attr, mask);
    if (error == EINVAL) tell_state(*qp);
    if (error) return error;
  } else if (const int error = qp->session->modify(*attr, mask)) {
    return error;
  }
  const ibv_qp_attr kept = qp->kept.take(*attr, mask);
  const bool reliable = service_of(qp->qp_type) == core::Service::kReliable;
  const core::Nanoseconds limit =
      reliable ? verbs::peer_time_limit(kept) : verbs::kPatienceWithoutRetries;
  const bool by_number = kept.dest_qp_num != 0;
  if (reliable && by_number &&
      (target == IBV_QPS_RTS || (mask & (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT))))
    qp->session->set_ack_timeout(limit, kept.timeout);
  // With 7, InfiniBand's sender retries forever, and programs use the same value at both ends. For
  // a connection of rdma_cm the id knows the peer's value (cm/link.cc).
  if (by_number && kept.dest_qp_num != core::kCmQpNumber && (mask & IBV_QP_RNR_RETRY))
    qp->session->await_receives(attr->rnr_retry == core::kMostRetries &&
                                !core::settings().rnr_wait_set);
  if (target == IBV_QPS_RTS || target == IBV_QPS_RESET) {
    qp->pd->context->engine->run_sync([&] {
      if (target == IBV_QPS_RESET) qp->peer_search.reset();
      if (qp->peer_search) qp->peer_search->enter_rts(kept.sq_psn, limit);
    });
  }
  return 0;
}

void uiwarp_qp_break(uiwarp_qp* qp) {
  if (qp->session) qp->session->break_connection();
}

void uiwarp_qp_deafen(uiwarp_qp* qp, int deaf) {
  if (qp->session) qp->session->deafen(deaf != 0);
}

int64_t uiwarp_qp_patience(uiwarp_qp* qp) {
  const bool has_retries = qp->session && service_of(qp->qp_type) == core::Service::kReliable;
  return has_retries ? qp->session->ack_timeout() : 0;
}

int uiwarp_qp_query(uiwarp_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  if (qp->datagrams) return qp->datagrams->query(*attr, *init);
  const int error = qp->session->query(*attr, mask, *init);
  if (error == 0) qp->kept.recall(*attr);
  return error;
}

int uiwarp_qp_post_send(uiwarp_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  if (qp->session) [[likely]]
    return qp->session->post_send(wr, bad);
  return qp->datagrams->post_send(wr, bad);
}

int uiwarp_qp_post_recv(uiwarp_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (qp->session) [[likely]]
    return qp->session->post_recv(wr, bad);
  return qp->datagrams->post_recv(wr, bad);
}

void uiwarp_qp_batch_begin(uiwarp_qp* qp) {
  if (qp->session) [[likely]]
    return qp->session->begin_batch();
  qp->datagrams->begin_batch();
}

int uiwarp_qp_batch_add(uiwarp_qp* qp, const ibv_send_wr* wr) {
  if (qp->session) [[likely]]
    return qp->session->add_to_batch(*wr);
  return qp->datagrams->add_to_batch(*wr);
}

int uiwarp_qp_batch_address(uiwarp_qp* qp, const ibv_ah* ah, uint32_t remote_qpn,
                            uint32_t remote_qkey) {
  if (!qp->datagrams)
    return core::refuse(qp->told, EOPNOTSUPP,
                        "ibv_wr_set_ud_addr: queue pair 0x%06x is no UD queue pair",
                        qp->registration.qp_num);
  return qp->datagrams->set_batch_address(ah, remote_qpn, remote_qkey);
}

int uiwarp_qp_batch_end(uiwarp_qp* qp, int publish) {
  if (qp->session) [[likely]]
    return qp->session->end_batch(publish != 0);
  return qp->datagrams->end_batch(publish != 0);
}

uint64_t uiwarp_qp_send_ops(int qp_type) {
  if (qp_type == IBV_QPT_UD) return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  const device::Face& face = device::face();
  if (!face.has(qp_type)) return 0;
  const auto type = static_cast<ibv_qp_type>(qp_type);
  constexpr struct {
    ibv_wr_opcode opcode;
    uint64_t flag;
  } ops[] = {
      {IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE},
      {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM},
      {IBV_WR_SEND, IBV_QP_EX_WITH_SEND},
      {IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM},
      {IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ},
      {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
      {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
      {IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV},
      {IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW},
      {IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV},
  };
  uint64_t supported = 0;
  for (const auto& op : ops) {
    if (session::QueuePair::supports(op.opcode, service_of(type), face.send_with_immediate))
      supported |= op.flag;
  }
  return supported;
}
