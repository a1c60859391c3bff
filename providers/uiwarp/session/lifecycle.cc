// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a connection begins and the ways it ends. Thread: engine.
//
// Every end takes the same steps, some of which may be empty:
//   begin_error()      the receive side is dead, receives are flushed unless a send may be to blame
//                      or answers go first, the sender is told
//   answers_first()    [sender] the peer's earlier Reads are answered, if a Terminate is to follow
//   handle_error()     [sender] the Terminate is built, the send queue is flushed
//   error_handled...() receives are flushed if a send may be to blame, the async event is raised
//   FIN                [sender] after the last octet; or the socket fails, or time runs out
//   end_connection()   the sender lets go of the stream
//   sender_stopped()   the stream lingers or closes; the observer is told
// A graceful close (begin_disconnect, or the peer's FIN) sends FIN first. When both directions are
// closed it calls begin_error() with a plan that has no Terminate and no event.

#include <cerrno>
#include <mutex>
#include <utility>

#include "core/assert.h"
#include "core/log.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "counters/file.h"
#include "qp/lost_peer.h"
#include "session/stages.h"
#include "session/state.h"
#include "transport/lingering_close.h"

namespace uiw::session {

namespace {

// Looks per close timeout at whether bytes have moved; so the timeout may last a quarter longer.
constexpr int kCloseLooks = 4;
// How many close timeouts a disconnect may last while bytes keep moving: requests that were posted
// before it may take a while, but a peer that reads a little now and then, or keeps asking for
// more, must not hold it up forever. A minute with the default settings.
constexpr int kDrainTimeouts = 12;

// Maps the error of a broken stream.
core::Cause cause_of(int error) {
  switch (error) {
    case ETIMEDOUT:
      return core::Cause::kPeerSilent;
    case EHOSTUNREACH:
    case ENETUNREACH:
      return core::Cause::kPeerUnreachable;
    case EFAULT:
      return core::Cause::kNotMapped;
    case ENOMEM:
      return core::Cause::kNoMemory;
    default:
      return core::Cause::kConnectionBroken;
  }
}

}  // namespace

int State::attach(transport::StreamPtr&& new_stream, const mpa::Agreement& agreement,
                  core::Bytes leftover, ConnectionObserver* new_observer,
                  QueuePair::Receiving when) {
  UIW_ASSERT(engine.on_engine_thread());
  const ibv_qp_state now = state.load(std::memory_order_acquire);
  const bool named = by_number.load(std::memory_order_relaxed);
  if (life.phase != Phase::kNone || life.failure != Failure::kNone || life.released())
    return EINVAL;
  if (!named && options.service == core::Service::kUnreliable) return EINVAL;
  const bool idle = now == IBV_QPS_INIT || now == IBV_QPS_RTR;
  // Without a connection a queue pair is in RTS or SQD only if it was claimed or expects its peer.
  // In SQD the program has called rdma_disconnect: the connection closes once what is posted has
  // gone out.
  const bool awaited = now == IBV_QPS_RTS || now == IBV_QPS_SQD;
  if (!idle && !awaited) return EINVAL;
  core::SipKey secret;
  if (!core::sys::random(&secret, sizeof secret)) secret.first = static_cast<uint64_t>(core::now());
  if (!receiver.keep(leftover)) return ENOMEM;
  if (!connection->start(agreement, new_stream->emss(), secret, core::settings().rnr_wait_ms > 0))
    return ENOMEM;
  if (&new_stream->engine() != &engine && !new_stream->move_to(engine)) return ENOMEM;
  ird.store(agreement.ird, std::memory_order_relaxed);
  ord.store(agreement.ord, std::memory_order_relaxed);
  if (connection->shared.acknowledged && agreement.ord == 0)
    core::log(core::LogLevel::kWarn,
              "queue pair 0x%06x: the peer answers no RDMA Reads, so that it cannot be asked what "
              "has arrived: "
              "Sends and Writes complete when they are sent",
              options.qp_num);
  stream = std::move(new_stream);
  // Until kStart, bytes that arrive wait in the stream; the handler of MPA start-up must not see
  // any of them.
  stream->set_handler(nullptr);
  if (deaf.load(std::memory_order_relaxed)) stream->set_deaf(true);
  const sockaddr_storage local = stream->local_address(), peer = stream->peer_address();
  counters::set_connected(*options.counters, local, peer);
  log_connected(options.qp_num, agreement, local, peer);
  watch = tell_of_connection(options.qp_num, *stream, agreement);
  observer = new_observer;
  life.enter(Phase::kStarting);
  if (idle && !named) state.store(IBV_QPS_RTS);
  sender.ask(kSendOnStream);  // the RTR
  if (when == QueuePair::Receiving::kAtOnce) ring(kStart);
  if (now == IBV_QPS_SQD) begin_disconnect();
  watch_peer();
  return 0;
}

// Does nothing if ibv_modify_qp to RESET or ERR has ended the claim already.
void State::abandon() {
  UIW_ASSERT(engine.on_engine_thread());
  const ibv_qp_state now = state.load(std::memory_order_acquire);
  const bool claimed = now == IBV_QPS_RTS || now == IBV_QPS_SQD;
  if (claimed && life.phase == Phase::kNone && !by_number.load(std::memory_order_relaxed))
    begin_error({.cause = core::Cause::kNotConnected});
}

void State::begin_error(const EndPlan& new_plan) {
  UIW_ASSERT(engine.on_engine_thread());
  if (life.failure == Failure::kBegun) sender.ask(kAnswerNoMore);
  if (life.released() || life.failure != Failure::kNone) return;
  life.failure = Failure::kBegun;
  end_farewell();
  plan = new_plan;
  connection->shared.end.store(plan.cause, std::memory_order_relaxed);
  log_end(options.qp_num, static_cast<uint32_t>(plan.cause));
  // Without an event, as when the peer has left in good order, only a flushed request makes the
  // program hear of it (Tx::flush()).
  if (plan.event) qp::explain_lost_peer(connection->shared);
  state.store(IBV_QPS_ERR);
  if (!plan.flushes_receives_late()) fail_receives();
  // The peer may not take the answers that go before the Terminate.
  if (plan.answers_first && life.connected()) arm_close_timer();
  sender.ask(kHandleError);
}

void State::error_handled_by_sender() {
  if (life.released()) return;
  if (plan.flushes_receives_late()) fail_receives();
  life.failure = Failure::kHandled;
  receiver.stop();
  // Conformance 3.4: completions first, then the event, then DISCONNECTED. If the peer's Terminate
  // named one of our WRs, that WR's completion has reported it, and there is no event.
  if (plan.event && !(plan.received && sender.blamed_by_peer()))
    options.events->on_async_event(*plan.event);
  if (options.srq) options.events->on_async_event(IBV_EVENT_QP_LAST_WQE_REACHED);
  if (!life.connected()) return;
  if (life.broken || life.outbound == Outbound::kFinSent) {
    end_connection();
    return;
  }
  stream->resume_receive();  // bytes are dropped, but the peer's FIN or RST must be seen
  arm_close_timer();
}

void State::begin_disconnect() {
  UIW_ASSERT(engine.on_engine_thread());
  ibv_qp_state expected = IBV_QPS_RTS;
  state.compare_exchange_strong(expected, IBV_QPS_SQD);
  if (!life.takes_input() || life.outbound != Outbound::kOpen) return;
  life.outbound = Outbound::kDraining;
  core::log(core::LogLevel::kDebug,
            "queue pair 0x%06x: disconnecting, what was posted is still sent", options.qp_num);
  begin_farewell();
  // The peer may accept nothing of what goes before the FIN, or answer none of our Reads.
  if (!close_timer.armed()) arm_close_timer();
  sender.ask(kDrain);
}

void State::on_fin_sent() {
  life.outbound = Outbound::kFinSent;
  if (!life.connected()) return;
  if (life.failure == Failure::kHandled) {
    end_connection();
  } else if (life.inbound != Inbound::kOpen) {
    begin_error({.cause = core::Cause::kPeerDisconnected});
  } else if (life.takes_input()) {
    arm_close_timer();  // now the peer has to close its side
  }
}

void State::on_send_failed() {
  life.broken = true;
  if (!life.connected()) return;
  if (life.failure == Failure::kHandled) {
    end_connection();
    return;
  }
  // What the peer sent before it broke off has still to be read; it may be a Terminate. The end of
  // the stream behind it ends the connection. That comes soon, or when a Send has waited long
  // enough for its receive.
  const int error = sender.failure();
  const bool broken_by_peer = error == EPIPE || error == ECONNRESET;
  if (broken_by_peer && life.inbound != Inbound::kClosed) return receiver.hurry();
  fail_connection(plan_for_broken_stream(error));
}

// The stream is broken. A reset while the connection is closing anyway is not reported to the
// application.
void State::break_off(int error) {
  life.broken = true;
  if (life.failure == Failure::kHandled) return end_connection();
  const bool closing = life.inbound != Inbound::kOpen || life.outbound == Outbound::kFinSent;
  if (closing)
    return begin_error({.cause = life.outbound == Outbound::kFinSent
                                     ? core::Cause::kDisconnected
                                     : core::Cause::kPeerDisconnected});
  fail_connection(plan_for_broken_stream(error));
}

// A Send of the peer has waited too long for its receive, and the stream's end cannot be seen
// behind it. If the peer has gone, InfiniBand would not deliver that Send any more, and what this
// end has to send would fail. False: keep waiting, as far as this function is concerned.
bool State::give_up_sender() {
  const transport::Pulse pulse = stream->pulse();
  const bool over = life.broken || pulse.over;
  if (by_number.load(std::memory_order_relaxed)) {
    // The program is not told before it has something to send.
    if ((!over && !pulse.closed) || send_queue->posted() == send_queue->retired()) return false;
    // Answers or a Terminate may precede the FIN. on_peer_closed() follows when they are read.
    if (!over) {
      receiver.drop_waiting();
      return true;
    }
    life.broken = true;
    give_up_peer();
    return true;
  }
  if (over) {
    life.broken = true;
    const int error = sender.failure();
    EndPlan ends = plan_for_broken_stream(error != 0 ? error : stream->take_error());
    ends.event = IBV_EVENT_QP_FATAL;  // the message is lost
    begin_error(ends);
    return true;
  }
  // A queue pair that waits forever still notices that its peer has disconnected.
  if (!pulse.closed || !awaits_receives.load(std::memory_order_relaxed)) return false;
  begin_error({.cause = core::Cause::kPeerDisconnected});
  return true;
}

// Something other than this end's program ends the connection, for the reason in `why`. The service
// decides whether the queue pair ends with it.
void State::fail_connection(const EndPlan& why) {
  if (options.service == core::Service::kReliable) return begin_error(why);
  if (life.failure == Failure::kNone) lose_peer();
}

// A socket returns EPIPE when the peer's FIN came before its RST: the peer has left in good order.
// When TCP has tried long enough it returns ETIMEDOUT, or the ICMP error that it got meanwhile. An
// adapter then fails the oldest work request, and raises no event for a queue pair connected by
// number.
EndPlan State::plan_for_broken_stream(int error) const {
  if (error == EPIPE) return {.cause = core::Cause::kPeerDisconnected};
  EndPlan ends{.event = IBV_EVENT_QP_FATAL, .cause = cause_of(error), .error = error};
  if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH) {
    if (by_number.load(std::memory_order_relaxed)) ends.event.reset();
    ends.failed_slot = qp::kOldestSlot;
    ends.failed_status = IBV_WC_RETRY_EXC_ERR;
  }
  return ends;
}

// The peer's FIN has come, and everything before it was received.
void State::on_peer_closed() {
  end_farewell();
  const bool named = by_number.load(std::memory_order_relaxed);
  // RFC 5041 6.2.1: a stream that ends inside a message has lost data. For a queue pair connected
  // by number an end between two segments of a Write is not reported, as in InfiniBand, and a Read
  // that is cut off fails by its own completion.
  if (named ? !connection->rx.at_boundary() : connection->rx.mid_message()) {
    fail_connection(
        {.event = IBV_EVENT_QP_FATAL, .cause = core::Cause::kMessageCutOff, .error = ECONNRESET});
    return;
  }
  if (named && life.outbound != Outbound::kFinSent) {
    lose_peer();
    return;
  }
  if (life.broken) {
    fail_connection(plan_for_broken_stream(sender.failure()));
    return;
  }
  if (life.outbound == Outbound::kFinSent) {
    begin_error({.cause = core::Cause::kDisconnected});  // both sides have closed: an orderly end
    return;
  }
  // RFC 5041 6.2.1: what the peer asked for before it closed is still sent.
  arm_close_timer();
  ibv_qp_state expected = IBV_QPS_RTS;
  state.compare_exchange_strong(expected, IBV_QPS_SQD);
  sender.ask(kFinish);
}

void State::on_stream_error(int error) {
  if (by_number.load(std::memory_order_relaxed) && life.failure == Failure::kNone &&
      life.outbound != Outbound::kFinSent && connection->rx.at_boundary()) {
    life.broken = true;
    lose_peer();
    return;
  }
  break_off(error);
}

void State::arm_close_timer() {
  life.quiet_looks = 0;
  look_at_close_later();
}

void State::look_at_close_later() {
  life.moved_at_look = octets_moved();
  engine.arm(close_timer, core::settings().close_timeout_ms * core::kMillisecond / kCloseLooks);
}

void State::look_at_close() {
  if (!life.connected()) return;
  const bool handled = life.failure == Failure::kHandled;
  const bool fin_sent = life.outbound == Outbound::kFinSent;
  // Either what was posted is still being sent. Or the peer has closed and still accepts what it
  // asked for, however long that takes: it cannot ask for more.
  const bool moved = !handled && !fin_sent && life.moved_at_look != octets_moved();
  life.quiet_looks = moved ? 0 : life.quiet_looks + 1;
  const bool draining = life.outbound == Outbound::kDraining;
  const bool drained_long = draining && ++life.drain_looks >= kDrainTimeouts * kCloseLooks;
  if (life.quiet_looks < kCloseLooks && (handled || !drained_long)) return look_at_close_later();
  life.broken = true;
  // The peer must not mistake an incomplete stream for one that ended in order.
  if (!fin_sent) stream->set_abortive();
  if (handled) {
    end_connection();
  } else {
    begin_error({.cause = core::Cause::kCloseTimedOut, .error = ETIMEDOUT});
  }
}

// The peer of a queue pair connected by number has gone, in good order or not. InfiniBand would not
// notice: receives stay posted, and there is no event or completion until something has to be sent.
void State::lose_peer() {
  core::log(core::LogLevel::kInfo, "queue pair 0x%06x: the peer has gone", options.qp_num);
  connection->rx.end_receive(IBV_WC_GENERAL_ERR, core::Cause::kMessageCutOff);
  end_connection();
}

// InfiniBand would retry for a while before the request fails. Meanwhile the program polls earlier
// completions, and may be finished: some programs post more than they need.
void State::miss_peer() {
  if (life.failure != Failure::kNone || life.released() || miss_timer.armed()) return;
  engine.arm(miss_timer, kLastHope);
}

PeerWanted State::peer_wanted() const {
  if (life.phase != Phase::kNone || life.failure != Failure::kNone || life.released())
    return PeerWanted::kNoMore;
  return send_queue->posted() == send_queue->retired() ? PeerWanted::kNotYet : PeerWanted::kNow;
}

void State::give_up_peer() {
  UIW_ASSERT(engine.on_engine_thread());
  if (options.service == core::Service::kUnreliable) return sender.ask(kDiscard);
  EndPlan ends = plan_for_broken_stream(ETIMEDOUT);
  ends.cause = life.phase == Phase::kNone ? core::Cause::kPeerNotFound : core::Cause::kPeerGone;
  begin_error(ends);
}

void State::end_connection() {
  UIW_ASSERT(engine.on_engine_thread());
  if (!life.stands()) return;
  end_farewell();
  life.enter(Phase::kEnding);
  sender.ask(kLetGo);
}

void State::sender_stopped() {
  UIW_ASSERT(engine.on_engine_thread());
  sender.forget_regions();
  log_losses(options.qp_num, connection->shared.losses);
  log_closed(options.qp_num, *stream);
  engine.disarm(close_timer);
  engine.disarm(silence_timer);
  receiver.stop();
  stream->set_handler(nullptr);
  if (life.broken) {
    stream.reset();
  } else {
    transport::lingering_close(engine, std::move(stream),
                               core::settings().close_timeout_ms * core::kMillisecond,
                               engine::Standing::kPeer);
  }
  life.enter(Phase::kOver);
  options.counters->connected.store(0, std::memory_order_relaxed);
  if (life.failure != Failure::kNone || !by_number.load(std::memory_order_relaxed))
    state.store(IBV_QPS_ERR);
  if (ConnectionObserver* told = std::exchange(observer, nullptr))
    told->on_connection_ended(plan.error);
}

void State::begin_destroy() {
  UIW_ASSERT(engine.on_engine_thread());
  if (life.released()) return;
  life.release = Release::kWanted;
  engine.disarm(miss_timer);
  if (life.connected()) {
    // What TCP has taken still reaches the peer; unsent work requests vanish with the queue pair.
    stream->set_handler(nullptr);
    end_connection();
    return;
  }
  receiver.stop();
}

// Back to RESET, after begin_destroy() has finished. All posted requests are dropped without
// completion, and so are completions that were not polled, as with adapters (mlx4, mlx5, hns).
// Memory windows bound to the stream are invalidated, so that they open no memory to the next peer.
bool State::reset(Beginning& beginning) {
  UIW_ASSERT(engine.on_engine_thread());
  // False: the last thread that posted still holds the role. Until it leaves nothing new may begin,
  // as life.release is still set.
  if (!sender.try_hold()) return false;
  empty_queues(std::move(beginning));
  options.memory->end_stream(options.qp_num);
  by_number = false;
  access_flags = 0;
  ird = ord = 0;
  awaits_receives.store(false, std::memory_order_relaxed);
  sender.begin_anew();
  receiver.begin_anew();
  plan = {};
  life = {};
  end_farewell();
  farewell_over.acquire();
  farewell.store(Farewell::kNone, std::memory_order_relaxed);
  silence = {};
  octets_at_silence = 0;
  probed_within = 0;
  // Posting threads read the state between begin() and end(), too: later posts find RESET.
  send_queue->begin();
  options.counters->dropped_sends.add(send_queue->clear());
  state.store(IBV_QPS_RESET);
  send_queue->end(true);
  if (own_receives) own_receives->clear();
  sender.let_go();
  return true;
}

}  // namespace uiw::session
