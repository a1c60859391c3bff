// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The receiving side and the engine's doorbell. Thread: engine.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/log.h"
#include "core/settings.h"
#include "session/state.h"

namespace uiw::session {

namespace {

// How long a peer may be silent after MPA start-up, until it is sent the first, second and third
// empty Write. The first one may wait up to the second one's time for who was slow before.
constexpr core::Nanoseconds kSilences[] = {10 * core::kMillisecond, 100 * core::kMillisecond,
                                           1000 * core::kMillisecond};
// What is received behind what has its place, at most: two of the largest segments. They are copied
// once more, but out of the cache, and a call for each costs more (doc/lab/014).
constexpr size_t kBehind = engine::Engine::kScratch;
// What the engine waits for when more of a large segment is to come: little of it, since the rest
// can be received directly then.
constexpr uint32_t kBeginning = 2048;
// How often, and how much, the engine receives directly before it looks after others.
constexpr int kDirectReceives = 4;
constexpr size_t kDirectOctets = 768 << 10;

}  // namespace

void State::run() {
  uint32_t seen = notes.load(std::memory_order_acquire);
  do {
    if ((seen & ~kNeedsNoReceiver) && !owns_receiver()) return;
  } while (!notes.compare_exchange_weak(seen, 0, std::memory_order_acq_rel));
  if ((seen & kRtrSent) && observer) observer->on_first_fpdu();
  // A broken stream's end is found by receiving, whoever was to be told of its beginning.
  if (seen & (kStart | kSendFailed)) start_receiving();
  if ((seen & kWantWritable) && stream) stream->want_writable();
  if (seen & (kWantWritable | kContinue)) on_full_socket();
  if (seen & kBurst) join_pollers();
  if (seen & kGiveBack) sender.ask(kReleaseRegions);
  if (seen & kContinue) sender.ask(kTakeTurn);
  if (seen & kStopped) on_stopped();
  if ((seen & (kReceivePosted | kSendsComplete)) && life.takes_input())
    handle(connection->rx.resume());
  if (seen & kErrorFound) begin_error(sender.found());
  if (seen & kPeerMissed) miss_peer();
  if (seen & kPeerSilent) on_peer_silent();
  // RFC 5040 4.8: an error of this side that no message of the peer is to blame for.
  if (seen & kFail)
    begin_error({.send_terminate = true,
                 .has_event = true,
                 .terminate = {.code = core::TermCode::kLocalCatastrophic},
                 .error = EIO});
  if (seen & kErrorHandled) error_handled_by_sender();
  if (seen & kSendFailed) on_send_failed();
  if (seen & kFinSent) on_fin_sent();
  if (seen & kDisconnect) begin_disconnect();
  if (seen & kDestroy) begin_destroy();
  if (seen & kSenderStopped) sender_stopped();
  // The last turn: nobody can ring any more, unless this turn did.
  if (life.release == Release::kWanted && !life.connected() &&
      notes.load(std::memory_order_acquire) == 0) {
    life.release = Release::kDone;
    released.release();
  }
}

void State::ring(uint32_t note) {
  if (notes.fetch_or(note, std::memory_order_acq_rel) == 0) engine.post(*this);
}

void State::start_receiving() {
  if (life.phase != Phase::kStarting) return;
  life.enter(Phase::kOpen);
  if (core::settings().wake_peer && connection->shared.agreement.initiator)
    engine.arm(wake_timer, std::clamp(2 * stream->age(), kSilences[0], kSilences[1]));
  const std::unique_ptr<uint8_t[]> octets = std::move(leftover);
  if (leftover_size > 0) on_octets({octets.get(), leftover_size});
  leftover_size = 0;
  if (stream) stream->set_handler(this);
}

// Linux siw answers a Request first and looks for octets from then on: an FPDU that comes right
// behind its Reply lies unread until another one comes. So a peer that says nothing gets another
// one, which asks nothing of it; a few times, as nobody knows how long such a peer takes.
void State::on_silence() {
  if (!life.takes_input()) return;
  if (sender.bytes_sent() > 0) {
    sender.ask(kWakePeer);
  }
  if (++life.wakes < std::size(kSilences)) engine.arm(wake_timer, kSilences[life.wakes]);
}

void State::on_octets(core::Bytes octets) {
  if (wake_timer.armed()) engine.disarm(wake_timer);
  if (!life.takes_input()) return;
  handle(connection->rx.on_octets(octets));
  const size_t directly = receive_directly();
  consider_grant(octets.size(), directly);
}

long State::receive_once(std::span<uint8_t> buffer, qp::RxStatus& status) {
  qp::Rx& rx = connection->rx;
  qp::DirectPlacement placement;
  if (!rx.plan_placement(placement)) {
    const long got = stream->receive_now(buffer.data(), rx.good_size(buffer.size()));
    if (got > 0) status = rx.on_octets(buffer.first(static_cast<size_t>(got)));
    return got;
  }
  placement.pieces[placement.count] = {buffer.data(), std::min(buffer.size(), kBehind)};
  const long got = stream->receive_now(placement.pieces.data(), placement.count + 1);
  if (got > 0) status = rx.placed_directly(placement, static_cast<size_t>(got), buffer);
  return got;
}

// Large segments are placed directly for as long as octets are there.
size_t State::receive_directly() {
  const std::span<uint8_t> behind = engine.scratch();
  size_t octets = 0;
  for (int share = kDirectReceives; share > 0 && octets < kDirectOctets; --share) {
    if (!life.takes_input() || life.pause != Pause::kNone || !connection->rx.may_place_directly())
      break;
    qp::RxStatus status = qp::RxStatus::kOk;
    const long got = receive_once(behind, status);
    if (got == -EAGAIN) break;
    if (got <= 0) {
      stream->end(got);
      return octets;
    }
    octets += static_cast<size_t>(got);
    engine.received_directly(static_cast<uint64_t>(got));
    handle(status);
  }
  if (!stream) return octets;
  const qp::Rx& rx = connection->rx;
  const size_t most = !life.takes_input()       ? 0
                      : rx.may_place_directly() ? kBeginning
                                                : rx.good_size(engine::Engine::kReceiveBuffer);
  stream->receive_at_most(static_cast<uint32_t>(most));
  return octets;
}

void State::hear_news() {
  qp::Rx& rx = connection->rx;
  if (rx.take_limit_reached() && options.srq_events) options.srq_events->on_srq_limit();
  if (rx.take_news()) sender.try_run();
}

void State::handle(qp::RxStatus status) {
  ++arrivals;
  hear_news();
  qp::Rx& rx = connection->rx;
  if (!life.first_fpdu_told && connection->shared.first_fpdu.load(std::memory_order_relaxed)) {
    life.first_fpdu_told = true;
    if (observer && !connection->shared.agreement.initiator) observer->on_first_fpdu();
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
      core::log(core::LogLevel::kInfo, "QP %u: ending the connection, Terminate 0x%04x: %s",
                options.qp_num, static_cast<unsigned>(fault.terminate.code),
                core::describe(fault.terminate.code));
      begin_error({.send_terminate = true,
                   .has_event = true,
                   .event = fault.event,
                   .terminate = fault.terminate,
                   .failed_slot = fault.failed_slot,
                   .failed_status = fault.failed_status,
                   .error = EPROTO});
      return;
    }
    case qp::RxStatus::kTerminated:
      core::log(core::LogLevel::kInfo, "QP %u: the peer ended the connection, Terminate 0x%04x: %s",
                options.qp_num, static_cast<unsigned>(rx.terminate().code),
                core::describe(rx.terminate().code));
      begin_error(
          {.has_received = true, .has_event = true, .received = rx.terminate(), .error = EPROTO});
      return;
  }
}

// A Send found no receive. RFC 5041 7.1 allows to hide that "by LLP means": TCP's window stops the
// peer, for a bounded time, since everything behind that Send has to wait too.
// Every Send that does find one makes a new beginning: a slow application is not a stuck one.
void State::wait_for_receive() {
  const bool progress = connection->rx.take_progress();
  if (progress || !receive_timer.armed())
    engine.arm(receive_timer, core::settings().rnr_wait_ms * core::kMillisecond);
  if (life.pause == Pause::kForReceive) return;
  pause_for(Pause::kForReceive);
  receives->wait(*this);
  // One may have been posted between the failed take and wait().
  if (!receives->empty()) ring(kReceivePosted);
}

void State::pause_for(Pause reason) {
  if (life.pause == reason) return;
  if (life.pause == Pause::kForReceive) {
    engine.disarm(receive_timer);
    receives->stop_waiting(*this);
  }
  life.pause = reason;
  if (reason != Pause::kNone) return stream->pause_receive();
  stream->resume_receive();
  if (life.inbound == Inbound::kFinWaits) on_end_of_stream();
}

// A peer may answer as soon as sendmsg() has handed TCP what it answers, and before the sender has
// completed that: it may have lost its CPU meanwhile. Whoever holds the role began before the
// octets came, or after; whoever let go of it has completed what it sent. The octets themselves
// bring the news that it was taken: the kernel's locks lie between both.
bool State::sends_first(bool answered) {
  if (answered) sender.try_run();
  if (!sender.is_running()) return true;
  if (is_received_by_pollers()) return false;  // whoever polls comes again
  sender.ask(kTellCompleted);
  return !sender.is_asked(kTellCompleted);
}

void State::on_receive_timeout() {
  if (!life.takes_input()) return;
  // One may have been posted a moment ago.
  handle(receives->empty() ? connection->rx.give_up_waiting() : connection->rx.resume());
}

void State::on_end_of_stream() {
  const bool waits = life.takes_input() && life.pause != Pause::kNone;
  life.inbound = waits ? Inbound::kFinWaits : Inbound::kClosed;
  if (waits || !life.takes_input()) return;
  if (!connection->rx.at_boundary()) {
    // RFC 5041 6.2.1: a stream that ends inside a message has lost data.
    begin_error({.has_event = true, .error = ECONNRESET});
    return;
  }
  if (by_number.load(std::memory_order_relaxed) && life.outbound != Outbound::kFinSent) {
    lose_peer();
    return;
  }
  if (life.broken) {
    begin_error(plan_for_broken_stream(sender.failure()));
    return;
  }
  if (life.outbound == Outbound::kFinSent) {
    begin_error({});  // both sides have closed: the orderly end
    return;
  }
  // RFC 5041 6.2.1: what the peer asked for before it closed is still sent.
  arm_close_timer();
  ibv_qp_state expected = IBV_QPS_RTS;
  state.compare_exchange_strong(expected, IBV_QPS_SQD);
  sender.ask(kFinish);
}

void State::on_error(int error) {
  life.broken = true;
  if (life.failure == Failure::kHandled) {
    end_connection();
    return;
  }
  if (by_number.load(std::memory_order_relaxed) && life.failure == Failure::kNone &&
      life.outbound != Outbound::kFinSent && connection->rx.at_boundary()) {
    lose_peer();
    return;
  }
  break_off(error);
}

void State::on_writable() {
  sender.ask(kHasRoom);
}

}  // namespace uiw::session
