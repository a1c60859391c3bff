// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The queue pair as verbs/ and cm/ see it: argument checks and state rules (conformance 3.5).
#include "session/queue_pair.h"

#include <sched.h>

#include <cerrno>
#include <new>
#include <utility>

#include "core/clock.h"
#include "core/explain_of.h"
#include "core/log.h"
#include "core/settings.h"
#include "core/verbs_names.h"
#include "session/relay.h"
#include "session/state.h"

namespace uiw::session {

namespace {

// The iWARP states: RESET, INIT and RTR are IDLE, RTS is entered only by connection set-up, SQD is
// a graceful close, ERR is the end.
bool is_idle(ibv_qp_state state) {
  return state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR;
}

constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

// The rights that a peer can be given: with unreliable service there are no answers, so no Reads or
// atomics.
constexpr unsigned peer_may(core::Service service) {
  constexpr unsigned kAnswered = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return service == core::Service::kReliable ? kRights : kRights & ~kAnswered;
}

}  // namespace

// Unlike InfiniBand's, a queue pair connected by number may send in RTR as well. On iWARP both
// directions start at once. perftest relies on that with iWARP: its receiving end sends credits
// from RTR.
bool State::may_post() const {
  const ibv_qp_state now = state.load(std::memory_order_acquire);
  return !is_idle(now) || (now == IBV_QPS_RTR && by_number.load(std::memory_order_relaxed));
}

int State::refuse_post() {
  if (core::settings().checked()) return EINVAL;  // the finding of --check says the same
  const ibv_qp_state now = state.load(std::memory_order_acquire);
  return core::refuse(
      refusals, EINVAL,
      "ibv_post_send: queue pair 0x%06x is in %s and has no peer: post when it is in RTS, after "
      "RDMA_CM_EVENT_ESTABLISHED or ibv_modify_qp to RTS",
      options.qp_num, core::name_of(now));
}

// Ends the batch after add() has refused a request.
void State::end_refused(bool publish) {
  const queue::PostRefusal refused = send_queue->take_refusal();
  send_queue->end(publish);
  // Requests before the one that was refused are sent.
  if (publish) sender.try_run();
  queue::explain(refusals, options.qp_num, refused);
}

// Null: the move is allowed, or does nothing. The table is InfiniBand's (ib_modify_qp_is_ok() of
// Linux): a queue pair that has named its peer does not go back. Programs that move their queue
// pair themselves (rping -q) do so after ESTABLISHED as well; on iWARP, connection set-up has moved
// it further by then.
const char* State::why_not(ibv_qp_state now, ibv_qp_state to) const {
  const bool named = by_number.load(std::memory_order_acquire);
  switch (to) {
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
      if (!named && now == IBV_QPS_RTS) return nullptr;
      if (named || !is_idle(now)) return ": move it to RESET first";
      return now == IBV_QPS_RESET && to == IBV_QPS_RTR ? " but by INIT" : nullptr;
    case IBV_QPS_RTS:
      // Only connection set-up leads there, or expect_peer().
      if (now == IBV_QPS_RTS) return nullptr;
      if (!named)
        return " before its peer is named: by ibv_modify_qp to RTR with IBV_QP_AV and "
               "IBV_QP_DEST_QPN, or by rdma_connect or rdma_accept, which do all of it";
      return now == IBV_QPS_RTR ? nullptr : " but by RTR";
    case IBV_QPS_SQE:
      return ", which no program asks for";
    default:
      return nullptr;
  }
}

QueuePair::QueuePair() = default;

std::unique_ptr<QueuePair> QueuePair::create(engine::Engine& engine,
                                             const QueuePairOptions& options) {
  core::ticks_in(0);  // measures the clock now, not during a post
  std::unique_ptr<State> state(new (std::nothrow) State(engine, options));
  if (!state || !state->create_queues()) return nullptr;
  std::unique_ptr<QueuePair> qp(new (std::nothrow) QueuePair);
  if (qp) qp->state_ = std::move(state);
  return qp;
}

QueuePair::~QueuePair() {
  if (!state_) return;
  say_farewell();
  if (state_->engine.in_child()) {
    // fork() did not copy the engine thread, and what it owned belongs to the parent.
    static_cast<void>(state_.release());
    return;
  }
  state_->ring(kDestroy);
  free_when_released();
}

void QueuePair::say_farewell() {
  state_->say_farewell();
}

void QueuePair::end_after(engine::Engine& engine, engine::Task& first) {
  struct Both final : engine::Task {
    engine::Task* first;
    State* state;
    void run() override {
      first->run();
      state->ring(kDestroy);  // after which this may be gone
    }
  } both;
  both.first = &first;
  both.state = state_.get();
  engine.post(both);
  free_when_released();
}

bool QueuePair::lets_go_of(uint32_t stag, bool now) {
  return state_->engine.in_child() || state_->sender.lets_go_of(stag, now);
}

bool QueuePair::leave() {
  return state_->leave_soon();
}

void QueuePair::free_when_released() {
  state_->engine.wait_for(state_->released);
  state_->options.memory->end_stream(state_->options.qp_num);
  state_->purge_completions().tell(state_->options.qp_num);
  state_.reset();
}

uint32_t QueuePair::qp_num() const {
  return state_->options.qp_num;
}

int QueuePair::post_send(ibv_send_wr* wr, ibv_send_wr** bad) {
  State& s = *state_;
  if (s.engine.in_child()) {
    if (bad) *bad = wr;
    return core::refuse_in_child();
  }
  s.send_queue->begin();
  if (!s.may_post()) {
    s.send_queue->end(false);
    if (bad) *bad = wr;
    return s.refuse_post();
  }
  for (; wr; wr = wr->next) {
    if (const int error = s.send_queue->add(*wr, s.options.signal_all)) {
      s.end_refused(true);
      if (bad) *bad = wr;
      return error;
    }
  }
  const qp::SendQueue::Added posted = s.send_queue->end(true);
  if (posted.requests > 0) s.after_post(posted.requests, posted.bytes);
  return 0;
}

int QueuePair::post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) {
  State& s = *state_;
  int error = 0;
  if (s.engine.in_child()) error = core::refuse_in_child();
  if (error == 0)
    error = queue::check_post_recv(s.refusals, s.options.qp_num,
                                   s.state.load(std::memory_order_acquire), s.options.srq);
  if (error == 0 && (error = s.own_receives->post(wr)))
    queue::explain(s.refusals, s.options.qp_num, *s.own_receives, *wr, error);
  if (error != ENODEV && s.state.load(std::memory_order_acquire) == IBV_QPS_ERR) s.flush_receives();
  if (error && bad) *bad = wr;
  return error;
}

void QueuePair::begin_batch() {
  if (!state_->engine.in_child()) state_->send_queue->begin();
}

int QueuePair::add_to_batch(const ibv_send_wr& wr) {
  State& s = *state_;
  if (s.engine.in_child()) return core::refuse_in_child();
  return s.send_queue->add(wr, s.options.signal_all);
}

int QueuePair::end_batch(bool publish) {
  State& s = *state_;
  if (s.engine.in_child()) return core::refuse_in_child();
  if (!publish) {
    s.end_refused(false);
    return 0;
  }
  const bool may_post = s.may_post();
  const qp::SendQueue::Added posted = s.send_queue->end(may_post);
  if (posted.requests > 0) s.after_post(posted.requests, posted.bytes);
  return may_post ? 0 : s.refuse_post();
}

void QueuePair::fail() {
  state_->ring(kFail);
}

void QueuePair::break_connection() {
  if (!state_->engine.in_child()) state_->ring_and_wait(kBreak);
}

void QueuePair::deafen(bool deaf) {
  if (state_->engine.in_child()) return;
  state_->deaf.store(deaf, std::memory_order_relaxed);
  state_->ring(kDeafen);
}

bool QueuePair::supports(ibv_wr_opcode opcode, core::Service service, bool send_with_immediate) {
  return qp::opcodes_of(service, send_with_immediate) >> opcode & 1;
}

int QueuePair::modify(const ibv_qp_attr& attr, int mask) {
  State& s = *state_;
  if (s.engine.in_child()) return core::refuse_in_child();
  // Each call waits for the engine, and RESET replaces what the others read.
  const std::lock_guard one_at_a_time(modifying_);
  core::Told& told = s.refusals;
  const uint32_t number = s.options.qp_num;
  if ((mask & IBV_QP_PORT) && attr.port_num != 1)
    return core::refuse(told, EINVAL,
                        "ibv_modify_qp: queue pair 0x%06x: port_num is %u, the device has port 1",
                        number, attr.port_num);
  // The caller handles the peer's address (expect_peer()). TCP has no path migration.
  if (mask & (IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_DEST_QPN))
    return core::refuse(
        told, EOPNOTSUPP,
        "ibv_modify_qp: queue pair 0x%06x: there are no alternate paths (IBV_QP_ALT_PATH)", number);
  const ibv_qp_state now = s.state.load(std::memory_order_acquire);
  if ((mask & IBV_QP_CUR_STATE) && attr.cur_qp_state != now)
    return core::refuse(told, EINVAL,
                        "ibv_modify_qp: queue pair 0x%06x: cur_qp_state is %s, but it is in %s",
                        number, core::name_of(attr.cur_qp_state), core::name_of(now));
  const auto no_way = [&](const char* why) {
    const char* const to = core::name_of(attr.qp_state);
    return core::refuse_of(to, told, EINVAL,
                           "ibv_modify_qp: queue pair 0x%06x does not go from %s to %s%s", number,
                           core::name_of(now), to, why);
  };
  if (mask & IBV_QP_STATE)
    if (const char* const why = s.why_not(now, attr.qp_state)) return no_way(why);
  // Before the move: the peer may connect as soon as the state has changed.
  if (mask & IBV_QP_ACCESS_FLAGS) allow(attr.qp_access_flags);
  if (!(mask & IBV_QP_STATE)) return 0;
  switch (attr.qp_state) {
    case IBV_QPS_RESET: {
      // RESET is allowed from every state (ibv_modify_qp). A connection that still runs ends as
      // with ibv_destroy_qp, and the engine is done with it when this returns.
      State::Beginning beginning = s.make_beginning();
      if (!beginning) return ENOMEM;
      s.say_farewell();
      s.ring(kDestroy);
      s.engine.wait_for(s.released);
      for (bool done = false; !done;) {
        s.engine.run_sync([&] { done = s.reset(beginning); });
        if (!done) sched_yield();  // another thread has just posted
      }
      return 0;
    }
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
    case IBV_QPS_RTS: {
      if (now == IBV_QPS_RTS) return 0;
      ibv_qp_state expected = now;
      return s.state.compare_exchange_strong(expected, attr.qp_state)
                 ? 0
                 : no_way(": another thread has moved it");
    }
    case IBV_QPS_SQD:
      // librdmacm's rdma_disconnect does this first, in any state; it must not fail.
      disconnect();
      return 0;
    case IBV_QPS_ERR:
      s.let_peer_ask();
      s.ring_and_wait(kToError);
      return 0;
    default:
      return EINVAL;
  }
}

int QueuePair::query(ibv_qp_attr& attr, int, ibv_qp_init_attr& init) const {
  const State& s = *state_;
  attr = {};
  attr.qp_state = attr.cur_qp_state = s.state.load(std::memory_order_acquire);
  attr.path_mtu = IBV_MTU_4096;
  attr.qp_access_flags = static_cast<unsigned>(s.access_flags.load(std::memory_order_relaxed));
  attr.port_num = 1;
  attr.cap = s.options.cap;
  attr.max_rd_atomic = static_cast<uint8_t>(s.ord.load(std::memory_order_relaxed));
  attr.max_dest_rd_atomic = static_cast<uint8_t>(s.ird.load(std::memory_order_relaxed));
  attr.timeout = s.timeout.load(std::memory_order_relaxed);
  attr.sq_draining = attr.qp_state == IBV_QPS_SQD;
  init = {};
  init.cap = s.options.cap;
  init.qp_type = s.options.service == core::Service::kReliable ? IBV_QPT_RC : IBV_QPT_UC;
  init.sq_sig_all = s.options.signal_all;
  return 0;
}

// Ignores rights to what this device does not have (FLUSH) and rights without effect (relaxed
// ordering), as the kernel, siw, rxe and mlx5 ignore those that they do not know.
void QueuePair::allow(unsigned access_flags) {
  State& s = *state_;
  const unsigned rights = access_flags & kRights;
  s.access_flags.store(static_cast<int>(rights), std::memory_order_relaxed);
  s.connection->shared.remote_rights.store(rights & peer_may(s.options.service),
                                           std::memory_order_relaxed);
}

int QueuePair::expect_peer() {
  State& s = *state_;
  if (s.engine.in_child()) return core::refuse_in_child();
  ibv_qp_state expected = IBV_QPS_INIT;
  if (s.state.load(std::memory_order_acquire) != expected) return EINVAL;
  // Before other threads can see RTR: RTS may follow at once.
  s.by_number.store(true, std::memory_order_release);
  if (s.state.compare_exchange_strong(expected, IBV_QPS_RTR)) return 0;
  s.by_number.store(false, std::memory_order_release);
  return EINVAL;
}

void QueuePair::set_ack_timeout(core::Nanoseconds limit, uint8_t timeout) {
  State& s = *state_;
  s.timeout.store(timeout, std::memory_order_relaxed);
  s.patience_with_peer.store(limit, std::memory_order_relaxed);
  s.engine.run_sync([&] { s.watch_peer(); });
}

core::Nanoseconds QueuePair::ack_timeout() const {
  return state_->patience_with_peer.load(std::memory_order_relaxed);
}

void QueuePair::await_receives(bool for_ever) {
  state_->awaits_receives.store(for_ever, std::memory_order_relaxed);
}

int QueuePair::claim() {
  State& s = *state_;
  if (s.engine.in_child()) return core::refuse_in_child();
  if (s.options.service == core::Service::kUnreliable) {
    core::log(
        core::LogLevel::kWarn,
        "queue pair 0x%06x: rdma_cm connects RC queue pairs only; a UC queue pair is connected by "
        "ibv_modify_qp, with number and GID of its peer",
        s.options.qp_num);
    return EINVAL;
  }
  if (s.by_number.load(std::memory_order_acquire)) {
    const ibv_qp_state now = s.state.load(std::memory_order_acquire);
    return now == IBV_QPS_RTR || now == IBV_QPS_RTS ? 0 : EINVAL;
  }
  for (ibv_qp_state expected : {IBV_QPS_INIT, IBV_QPS_RTR}) {
    if (s.state.compare_exchange_strong(expected, IBV_QPS_RTS)) return 0;
  }
  return EINVAL;
}

// The engine on which connections are made may wait for the queue pair's engine, never the other
// way round.
PeerWanted QueuePair::peer_wanted() const {
  PeerWanted wanted = PeerWanted::kNoMore;
  state_->engine.run_sync([&] { wanted = state_->peer_wanted(); });
  return wanted;
}

void QueuePair::give_up_peer() {
  state_->engine.run_sync([&] { state_->give_up_peer(); });
}

int QueuePair::attach(transport::StreamPtr&& stream, const mpa::Agreement& agreement,
                      core::Bytes leftover, ConnectionObserver* observer, Receiving receiving) {
  State& s = *state_;
  if (s.engine.on_engine_thread())
    return s.attach(std::move(stream), agreement, leftover, observer, receiving);
  std::shared_ptr<Relay> relay(new (std::nothrow) Relay(stream->engine(), observer));
  if (!relay) return ENOMEM;
  int error = 0;
  s.engine.run_sync([&] {
    error = s.attach(std::move(stream), agreement, leftover, relay.get(), receiving);
    if (error == 0) Relay::begin(relay);
  });
  if (error == 0) relay_ = std::move(relay);
  return error;
}

void QueuePair::receive() {
  state_->ring(kStart);
}

void QueuePair::abandon() {
  state_->engine.run_sync([&] { state_->abandon(); });
}

void QueuePair::forget_observer() {
  if (relay_) {
    relay_->forget();
  } else {
    state_->observer = nullptr;
  }
}

void QueuePair::disconnect() {
  ibv_qp_state expected = IBV_QPS_RTS;
  state_->state.compare_exchange_strong(expected, IBV_QPS_SQD);
  state_->ring(kDisconnect);
}

}  // namespace uiw::session
