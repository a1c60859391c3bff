// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engine's task: what it does when the doorbell was rung. Thread: engine.
#include "session/state.h"

#include <sched.h>

#include <cerrno>

namespace uiw::session {

void State::run() {
  uint32_t seen = doorbell.load(std::memory_order_acquire);
  do {
    if ((seen & ~kNeedsNoReceiver) && !owns_receiver()) return;
  } while (!doorbell.compare_exchange_weak(seen, 0, std::memory_order_acq_rel));
  if ((seen & kRtrSent) && observer) observer->on_first_fpdu();
  // With kSendFailed too: the end of a broken stream is found by receiving, even if cm/ has not
  // called receive() yet.
  if (seen & (kStart | kSendFailed)) receiver.start();
  if ((seen & kWantWritable) && stream) stream->want_writable();
  if (seen & (kWantWritable | kContinue)) on_full_socket();
  if (seen & kBurst) join_pollers();
  if (seen & kGiveBack) sender.ask(kReleaseRegions);
  if (seen & kContinue) sender.ask(kTakeTurn);
  if (seen & kStopped) receiver.on_stopped();
  // Pollers find out by themselves.
  if ((seen & kSendsComplete) && !is_received_by_pollers()) receiver.on_sends_complete();
  if (seen & kReceivePosted) receiver.resume();
  if (seen & kErrorFound) begin_error(sender.found());
  if (seen & kPeerMissed) miss_peer();
  if (seen & kPeerSilent) on_peer_silent();
  // RFC 5040 4.8: a local error that no message of the peer has caused.
  if (seen & kFail)
    begin_error({.terminate = rdmap::Terminate{.code = core::TermCode::kLocalCatastrophic},
                 .event = IBV_EVENT_QP_FATAL,
                 .cause = core::Cause::kQueueOverflow,
                 .error = EIO});
  if (seen & kFarewell) begin_farewell();
  if (seen & kToError) begin_error({.cause = core::Cause::kModifiedToError});
  if (seen & kBreak) reset_connection();
  if ((seen & kDeafen) && life.connected() && stream)
    stream->set_deaf(deaf.load(std::memory_order_relaxed));
  if (seen & kErrorHandled) error_handled_by_sender();
  if (seen & kSendFailed) on_send_failed();
  if (seen & kFinSent) on_fin_sent();
  if (seen & kDisconnect) begin_disconnect();
  if (seen & kDestroy) begin_destroy();
  if (seen & kSenderStopped) sender_stopped();
  // The last turn: nothing but this turn itself can have rung again.
  if (life.release == Release::kWanted && !life.connected() &&
      doorbell.load(std::memory_order_acquire) == 0) {
    life.release = Release::kDone;
    released.release();
  }
}

// As if the network had reset it; the peer gets a reset, too.
void State::reset_connection() {
  if (!life.connected() || !stream) return;
  stream->cut();
  break_off(ECONNRESET);
}

void State::ring(uint32_t bits) {
  if (doorbell.fetch_or(bits, std::memory_order_acq_rel) == 0) engine.post(*this);
}

void State::ring_and_wait(uint32_t bit) {
  ring(bit);
  for (bool done = false; !done;) {
    engine.run_sync([&] { done = !(doorbell.load(std::memory_order_acquire) & bit); });
    if (!done) sched_yield();  // a poller is receiving
  }
}

}  // namespace uiw::session
