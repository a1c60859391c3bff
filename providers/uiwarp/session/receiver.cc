// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "session/receiver.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/clock.h"
#include "core/instrumented.h"
#include "core/log.h"
#include "core/settings.h"
#include "core/tuning.h"
#include "session/state.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::session {

namespace {

namespace tuning = core::tuning;

// How long a peer may be silent after MPA start-up until it is sent the first, second and third
// empty Write. The first wait is longer, up to the second's, when start-up was slow.
constexpr core::Nanoseconds kSilences[] = {10 * core::kMillisecond, 100 * core::kMillisecond,
                                           1000 * core::kMillisecond};

}  // namespace

bool Receiver::keep(core::Bytes leftover) {
  if (leftover.empty()) return true;
  now_.leftover.reset(new (std::nothrow) uint8_t[leftover.size()]);
  if (!now_.leftover) return false;
  std::memcpy(now_.leftover.get(), leftover.data(), leftover.size());
  now_.leftover_size = leftover.size();
  return true;
}

void Receiver::start() {
  if (owner_.life.phase != Phase::kStarting) return;
  owner_.life.enter(Phase::kOpen);
  if (core::settings().wake_peer && owner_.connection->shared.agreement.initiator)
    owner_.engine.arm(wake_timer_,
                      std::clamp(2 * owner_.stream->age(), kSilences[0], kSilences[1]));
  const std::unique_ptr<uint8_t[]> octets = std::move(now_.leftover);
  if (now_.leftover_size > 0) on_octets({octets.get(), now_.leftover_size});
  now_.leftover_size = 0;
  if (owner_.stream) owner_.stream->set_handler(this);
}

// Linux siw first answers a Request and only then starts to watch for octets: an FPDU that comes
// right behind its Reply lies unread until another one comes. So a silent peer is sent an empty
// Write, which asks nothing of it. This is repeated a few times, as nobody knows how long such a
// peer takes.
void Receiver::on_silence() {
  if (!owner_.life.takes_input()) return;
  if (owner_.sender.bytes_sent() > 0) owner_.sender.ask(kWakePeer);
  if (++now_.wakes < std::size(kSilences)) owner_.engine.arm(wake_timer_, kSilences[now_.wakes]);
}

void Receiver::on_octets(core::Bytes octets) {
  if (wake_timer_.armed()) owner_.engine.disarm(wake_timer_);
  owner_.options.counters->bytes_received.add(octets.size());
  if (owner_.watch) owner_.watch->received(octets);
  if (!owner_.life.takes_input()) return;
  handle(owner_.connection->rx.on_octets(octets));
  const size_t directly = receive_directly();
  owner_.consider_grant(octets.size(), directly);
}

long Receiver::receive_once(std::span<uint8_t> buffer, qp::RxStatus& status) {
  qp::Rx& rx = owner_.connection->rx;
  qp::DirectPlacement placement;
  if (!rx.plan_placement(placement)) {
    const long got = owner_.stream->receive_now(buffer.data(), rx.good_size(buffer.size()));
    if (got > 0) {
      owner_.options.counters->bytes_received.add(static_cast<uint64_t>(got));
      if (owner_.watch) owner_.watch->received(buffer.first(static_cast<size_t>(got)));
      status = rx.on_octets(buffer.first(static_cast<size_t>(got)));
    }
    return got;
  }
  placement.pieces[placement.count] = {buffer.data(),
                                       std::min(buffer.size(), engine::Engine::kScratch)};
  const long got = owner_.stream->receive_now(placement.pieces.data(), placement.count + 1);
  if (got > 0) {
    owner_.options.counters->bytes_received.add(static_cast<uint64_t>(got));
    if (owner_.watch)
      owner_.watch->received({placement.pieces.data(), placement.count + 1},
                             static_cast<size_t>(got));
    status = rx.placed_directly(placement, static_cast<size_t>(got), buffer);
  }
  return got;
}

// Places large segments directly for as long as the socket has octets.
size_t Receiver::receive_directly() {
  const std::span<uint8_t> behind = owner_.engine.scratch();
  size_t octets = 0;
  for (int share = tuning::kDirectReceives; share > 0 && octets < tuning::kDirectBytes; --share) {
    if (!owner_.life.takes_input() || now_.pause != Pause::kNone ||
        !owner_.connection->rx.may_place_directly())
      break;
    qp::RxStatus status = qp::RxStatus::kOk;
    const long got = receive_once(behind, status);
    if (got == -EAGAIN) break;
    if (got <= 0) {
      owner_.stream->end(got);
      return octets;
    }
    octets += static_cast<size_t>(got);
    owner_.engine.received_directly(static_cast<uint64_t>(got));
    handle(status);
  }
  if (!owner_.stream) return octets;
  const qp::Rx& rx = owner_.connection->rx;
  const size_t most = !owner_.life.takes_input() ? 0
                      : rx.may_place_directly()  ? tuning::kBeginning
                                                 : rx.good_size(engine::Engine::kReceiveBuffer);
  owner_.stream->receive_at_most(static_cast<uint32_t>(most));
  return octets;
}

void Receiver::hear_news() {
  qp::Rx& rx = owner_.connection->rx;
  if (rx.take_limit_reached() && owner_.options.srq_events)
    owner_.options.srq_events->on_srq_limit();
  if (rx.take_news()) owner_.sender.try_run();
}

void Receiver::handle(qp::RxStatus status) {
  ++now_.arrivals;
  hear_news();
  owner_.look_at_farewell();
  qp::Rx& rx = owner_.connection->rx;
  if (!now_.first_fpdu_told &&
      owner_.connection->shared.first_fpdu.load(std::memory_order_relaxed)) {
    now_.first_fpdu_told = true;
    if (owner_.observer && !owner_.connection->shared.agreement.initiator)
      owner_.observer->on_first_fpdu();
  }
  switch (status) {
    case qp::RxStatus::kOk:
      pause_for(Pause::kNone);
      return;
    case qp::RxStatus::kWantReceive:
      wait_for_receive();
      return;
    case qp::RxStatus::kWantSender:
      pause_for(Pause::kForSender);
      return;
    case qp::RxStatus::kFault: {
      const qp::RxFault& fault = rx.fault();
      core::log(core::LogLevel::kInfo,
                "queue pair 0x%06x: ending the connection, Terminate 0x%04x: %s",
                owner_.options.qp_num, static_cast<unsigned>(fault.terminate.code),
                core::describe(fault.terminate.code));
      rx.explain_fault();
      const EndPlan plan{.terminate = fault.terminate,
                         .event = fault.event,
                         .failed_slot = fault.failed_slot,
                         .failed_status = fault.failed_status,
                         .cause = fault.cause,
                         .error = EPROTO,
                         .answers_first = true};
      if (fault.blame == qp::RxFault::Blame::kProgram)
        owner_.begin_error(plan);
      else
        owner_.fail_connection(plan);
      return;
    }
    case qp::RxStatus::kTerminated:
      core::log(core::LogLevel::kInfo,
                "queue pair 0x%06x: the peer ended the connection, Terminate 0x%04x: %s",
                owner_.options.qp_num, static_cast<unsigned>(rx.terminate().code),
                core::describe(rx.terminate().code));
      owner_.fail_connection(
          {.received = rx.terminate(),
           .event = IBV_EVENT_QP_FATAL,
           .cause = core::cause_of_terminate(core::End::kPeer, rx.terminate().code),
           .error = EPROTO});
      return;
  }
}

// A Send found no receive. RFC 5041 7.1 allows hiding that "by LLP means": TCP's window stops the
// peer, for a bounded time, since everything behind that Send has to wait too. Every Send that does
// find a receive starts the time anew: a slow application is not a stuck one.
void Receiver::wait_for_receive() {
  const bool progress = owner_.connection->rx.take_progress();
  if (progress || !receive_timer_.armed()) {
    owner_.engine.arm(receive_timer_, patience());
    if (owner_.connection->shared.expects_question()) owner_.sender.ask(kTellArrivals);
  }
  if (now_.pause == Pause::kForReceive) return;
  pause_for(Pause::kForReceive);
  owner_.options.counters->rnr_waits.add(1);
  if (core::instrumented.load(std::memory_order_relaxed)) now_.waits_since = core::now();
  owner_.receives->wait(*this);
  // One may have been posted between the failed take and wait().
  if (!owner_.receives->empty()) owner_.ring(kReceivePosted);
}

// A shorter time when the peer has gone: bytes behind the Send cannot report that.
core::Nanoseconds Receiver::patience() const {
  const core::Nanoseconds wait = core::settings().rnr_wait_ms * core::kMillisecond;
  return owner_.life.broken ? std::min(wait, kLastHope) : wait;
}

void Receiver::hurry() {
  if (now_.pause == Pause::kForReceive) owner_.engine.arm(receive_timer_, patience());
}

void Receiver::drop_waiting() {
  core::log(core::LogLevel::kInfo,
            "queue pair 0x%06x: the peer has closed; its message that found no receive is dropped",
            owner_.options.qp_num);
  handle(owner_.connection->rx.take_answers_only());
}

void Receiver::pause_for(Pause reason) {
  if (now_.pause == reason) return;
  if (now_.pause == Pause::kForReceive) {
    owner_.engine.disarm(receive_timer_);
    owner_.receives->stop_waiting(*this);
    tell_of_wait(false);
  }
  now_.pause = reason;
  if (reason != Pause::kNone) return owner_.stream->pause_receive();
  owner_.stream->resume_receive();
  if (owner_.life.inbound == Inbound::kFinWaits) on_end_of_stream();
}

void Receiver::tell_of_wait(bool gave_up) {
  const uiwarp_verbs* const told = core::instrumented.load(std::memory_order_acquire);
  const core::Nanoseconds since = std::exchange(now_.waits_since, 0);
  if (told && since != 0)
    told->receive_awaited(owner_.options.qp_num, static_cast<uint64_t>(core::now() - since),
                          gave_up);
}

// A peer may answer a request as soon as sendmsg() has handed it to TCP. The sender may not have
// completed the request by then, as its thread may have lost its CPU. If a thread holds the role,
// it may have sent the request before these octets came; if none does, what was sent is completed.
// Memory order: the octets that arrive imply that the request was sent, and the kernel's locks
// order the two.
bool Receiver::sends_first(bool answered) {
  if (answered) owner_.sender.try_run();
  // A thread that posts without pause holds the role nearly always; without this flag the receiver
  // would ask forever.
  if (std::exchange(now_.sends_complete, false)) return true;
  if (!owner_.sender.is_running()) return true;
  if (owner_.is_received_by_pollers()) return false;  // the next poll tries again
  owner_.sender.ask(kTellCompleted);
  return !owner_.sender.is_asked(kTellCompleted);
}

void Receiver::on_receive_timeout() {
  if (!owner_.life.takes_input()) return;
  qp::Rx& rx = owner_.connection->rx;
  // One may have been posted a moment ago.
  if (!owner_.receives->empty()) return handle(rx.resume());
  // This end has closed: the program wants nothing more. What comes is dropped until the peer
  // closes, too.
  if (owner_.life.outbound == Outbound::kFinSent)
    return owner_.begin_error({.cause = core::Cause::kDisconnected});
  if (owner_.give_up_sender()) return;
  if (owner_.awaits_receives.load(std::memory_order_relaxed)) {
    owner_.engine.arm(receive_timer_, patience());
    core::explain(
        owner_.connection->shared.told,
        "queue pair 0x%06x: the peer has sent a message, and no receive was posted for "
        "%u ms; it waits on, as the retry count is 7 (for ever). UIWARP_RNR_WAIT_MS limits it",
        owner_.options.qp_num, static_cast<unsigned>(core::settings().rnr_wait_ms));
    return;
  }
  if (now_.waits_since == 0 || !core::settings().checked())
    core::explain(
        owner_.connection->shared.told,
        "queue pair 0x%06x: the peer has sent a message, and no receive was posted for %u ms "
        "(UIWARP_RNR_WAIT_MS): the connection ends. Post receives before the peer sends%s",
        owner_.options.qp_num, static_cast<unsigned>(core::settings().rnr_wait_ms),
        owner_.options.srq ? ", to the shared receive queue" : "");
  tell_of_wait(true);
  rx.set_explained();
  handle(rx.give_up_waiting());
}

void Receiver::on_end_of_stream() {
  const bool waits = owner_.life.takes_input() && now_.pause != Pause::kNone;
  owner_.life.inbound = waits ? Inbound::kFinWaits : Inbound::kClosed;
  if (!waits && owner_.life.takes_input()) owner_.on_peer_closed();
}

void Receiver::on_error(int error) {
  owner_.on_stream_error(error);
}

void Receiver::on_writable() {
  owner_.sender.ask(kHasRoom);
}

bool Receiver::receive_polled(std::span<uint8_t> buffer) {
  if (now_.stopped_by) return false;
  qp::RxStatus status = qp::RxStatus::kOk;
  long got = 1;
  if (owner_.connection->rx.wants_sender()) {
    if (owner_.sender.is_running()) return false;
    status = owner_.connection->rx.resume();
  } else {
    got = receive_once(buffer, status);
    if (got == -EAGAIN) return false;
  }
  if (got > 0) {
    hear_news();
    if (status == qp::RxStatus::kOk || status == qp::RxStatus::kWantSender) return true;
  }
  now_.stopped_by = {.result = got > 0 ? 1 : got, .status = status};
  owner_.ring(kStopped);
  return got > 0;
}

void Receiver::on_stopped() {
  const std::optional<Stop> stop = std::exchange(now_.stopped_by, std::nullopt);
  if (!stop || !owner_.stream) return;
  if (stop->result <= 0) {
    owner_.stream->end(stop->result);
    return;
  }
  owner_.stream->resume_receive();
  if (owner_.life.takes_input()) handle(stop->status);
}

void Receiver::resume() {
  if (owner_.life.takes_input()) handle(owner_.connection->rx.resume());
}

void Receiver::on_sends_complete() {
  now_.sends_complete = true;
  resume();
  now_.sends_complete = false;
}

void Receiver::stop() {
  if (now_.pause == Pause::kForReceive) tell_of_wait(false);
  now_.pause = Pause::kNone;
  owner_.engine.disarm(receive_timer_);
  owner_.engine.disarm(wake_timer_);
  owner_.receives->stop_waiting(*this);
}

// If a poller has stopped, on_stopped() goes on: the receive machine holds bytes that must be
// handled first, or the socket has reported an end that it will not report twice.
void Receiver::take_back() {
  if (now_.stopped_by) return;
  if (!owner_.connection->rx.wants_sender()) return owner_.stream->resume_receive();
  now_.pause = Pause::kForSender;
  owner_.sender.ask(kTellCompleted);
}

void Receiver::on_receive_posted() {
  owner_.ring(kReceivePosted);
}

}  // namespace uiw::session
