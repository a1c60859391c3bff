// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The sending side: run by whoever holds the sender role, an application thread that posts or the
// engine. A lone message costs one system call and no thread hand-over.
#include <cerrno>
#include <utility>

#include "core/clock.h"
#include "core/flag.h"
#include "session/state.h"

namespace uiw::session {

namespace {

// What a poster sends of a backlog before the engine carries on: ibv_post_send must not take
// forever.
constexpr int kPosterShare = 4;
// What the engine sends for one QP before it looks after the others.
constexpr int kEngineShare = 4;
// The path MTU may change (RFC 5044 4.5); asking costs a system call.
constexpr uint32_t kSendsPerEmssCheck = 64;
// How long a poller leaves a full socket alone: about 10 us. Meanwhile TCP gets rid of enough for
// the next call to be worth it.
constexpr uint64_t kRetry = 30000;  // ticks

}  // namespace

void State::ring(uint32_t note) {
  if (notes.fetch_or(note, std::memory_order_acq_rel) == 0) engine.post(*this);
}

void State::kick_sender() {
  if (!sender_role.enter()) return;
  do {
    run_sender();
  } while (!sender_role.leave());
}

void State::run_sender() {
  if (wish_start.load(std::memory_order_acquire)) {
    wish_start.store(false, std::memory_order_relaxed);
    tx_stream = stream.get();
    transmitting = true;
  }
  if (wish_error.load(std::memory_order_acquire) && !error_handled) handle_error();
  if (error_handled) {
    connection->tx.flush(connection->shared);
  } else if (transmitting) {
    connection->tx.retire();
  }
  if (core::take_down(wish_tell)) ring(kSendsComplete);
  if (wish_stop.load(std::memory_order_acquire)) {
    if (tx_stream) {
      connection->tx.drop_pieces();
      tx_stream = nullptr;
      ring(kSenderStopped);
    }
    notice_lost_peer();
    return;
  }
  if (core::take_down(wish_give_back) && !give_back_revoked()) send_failed(ENOMEM);
  if (!transmitting) return;
  if (wish_drain.load(std::memory_order_acquire) && !draining) {
    draining = true;
    connection->tx.stop_starting();
  }
  if (wish_finish.load(std::memory_order_acquire)) connection->tx.stop_starting_now();
  if (core::take_down(wish_writable)) blocked = false;
  if (core::take_down(wish_continue)) engine_carries_on = false;
  // A socket that is full wakes the peer by what is still to come.
  if (core::take_down(wish_wake) && tx_stream && !blocked && !draining && !fin_sent)
    connection->tx.add_empty_write();
  if (!tx_stream || blocked || engine_carries_on) return;
  connection->tx.gather(may_gather());
  pump();
}

void State::handle_error() {
  error_handled = true;
  if (!transmitting) {
    if (plan.failed_slot != qp::kNoSlot) send_queue->fail(plan.failed_slot, plan.failed_status);
    connection->tx.flush(connection->shared);
  } else {
    qp::Tx::Cause cause;
    if (plan.send_terminate) cause.send = &plan.terminate;
    if (plan.has_received) cause.received = &plan.received;
    cause.failed_slot = plan.failed_slot;
    cause.failed_status = plan.failed_status;
    blamed = connection->tx.abandon(cause);
  }
  ring(kErrorHandled);
}

void State::pump() {
  const bool on_engine = engine.on_engine_thread();
  for (int share = on_engine ? kEngineShare : kPosterShare; share > 0; --share) {
    if (!connection->tx.fill()) {
      const qp::TxFault& fault = connection->tx.fault();
      if (fault.raised && !error_handled) {
        report_error({.send_terminate = true,
                      .has_event = true,
                      .event = fault.local_access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_FATAL,
                      .terminate = fault.terminate,
                      .error = EIO});
        return;
      }
      if (connection->tx.left_requests() && !leave_gathered()) {
        connection->tx.gather(false);
        continue;
      }
      finish_if_due();
      return;
    }
    if (!send_once(on_engine)) return;
  }
  engine_carries_on = true;
  send_later(kContinue);
}

// Whoever spins on the completion queue goes on, or else the engine, by `note`.
void State::send_later(uint32_t note) {
  if (has_poller.load(std::memory_order_relaxed)) {
    unfinished.store(true, std::memory_order_seq_cst);
    // The engine, taking the queue pair from its pollers, either sees this or is seen here.
    if (has_poller.load(std::memory_order_seq_cst)) return;
    if (!unfinished.exchange(false, std::memory_order_acq_rel)) return;
  }
  ring(note);
}

// The engine begins the end and comes back with wish_error.
void State::report_error(const ErrorPlan& error) {
  if (std::exchange(error_found, true)) return;
  found = error;
  ring(kErrorFound);
}

// The peer of a queue pair connected by number went without a word. Like InfiniBand's retries, only
// something to be sent finds out.
void State::notice_lost_peer() {
  if (!by_number.load(std::memory_order_relaxed) || error_handled) return;
  if (send_queue->posted() == send_queue->retired()) return;
  ring(kPeerMissed);
}

// False: stop for now.
bool State::send_once(bool on_engine) {
  qp::Tx& tx = connection->tx;
  const auto pieces = tx.pieces();
  const long sent = tx_stream->send(pieces.data(), pieces.size());
  if (sent == -EAGAIN) {
    blocked = true;
    if (!keep_regions()) {
      send_failed(ENOMEM);
      return false;
    }
    retry_at.store(core::ticks() + kRetry, std::memory_order_relaxed);
    send_later(kWantWritable);
    return false;
  }
  if (sent < 0) {
    send_failed(static_cast<int>(-sent));
    return false;
  }
  if (on_engine) engine.sent(static_cast<uint64_t>(sent));
  tx.consume(static_cast<uint64_t>(sent));
  octets_sent.store(octets_sent.load(std::memory_order_relaxed) + static_cast<uint64_t>(sent),
                    std::memory_order_relaxed);
  if (!error_handled) tx.retire();
  if (!rtr_announced && tx.rtr_sent()) {
    rtr_announced = true;
    if (connection->shared.agreement.initiator) ring(kRtrSent);
  }
  if (++sends_since_emss >= kSendsPerEmssCheck) {
    sends_since_emss = 0;
    tx.set_emss(tx_stream->emss());
  }
  return true;
}

// What is to be sent of regions that the peer reads stays there while the socket is full, for as
// long as nobody deregisters one: to copy it halved the bandwidth of Reads. False: out of memory.
bool State::keep_regions() {
  qp::Tx& tx = connection->tx;
  if (keeps_regions || !tx.holds_regions()) return true;
  keeps_regions = true;
  options.memory->join(*this);
  return give_back_revoked();  // who began to wait before join() may not have asked us
}

// Only where somebody waits for one of ours: other queue pairs' regions are nothing to copy for.
bool State::give_back_revoked() {
  qp::Tx& tx = connection->tx;
  return !tx.holds_revoked_regions() || tx.release_regions();
}

// The connection cannot carry anything any more: EPIPE, ECONNRESET, ETIMEDOUT, or EFAULT when the
// application unmapped memory of an outstanding work request.
void State::send_failed(int error) {
  blocked = true;
  if (send_error != 0) return;  // the first is what happened; those after it only follow
  // The error's handling will do it again should memory be short now.
  static_cast<void>(connection->tx.release_regions());
  send_error = error;
  ring(kSendFailed);
}

// FIN, when everything that had to go out is with TCP.
void State::finish_if_due() {
  if (fin_sent) return;
  const qp::Tx& tx = connection->tx;
  const bool due = error_handled
                       ? !tx.pending()
                       : (wish_drain.load(std::memory_order_acquire) && tx.idle()) ||
                             (wish_finish.load(std::memory_order_acquire) && !tx.owes_octets());
  if (!due) return;
  fin_sent = true;
  tx_stream->shutdown_write();
  ring(kFinSent);
}

}  // namespace uiw::session
