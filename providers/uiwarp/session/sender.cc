// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "session/sender.h"

#include <cerrno>
#include <utility>

#include "core/tuning.h"
#include "session/state.h"

namespace uiw::session {

void Sender::try_run() {
  if (!role_.enter()) return;
  do {
    run();
  } while (!role_.leave());
}

void Sender::begin_anew() {
  asked_.store(0, std::memory_order_relaxed);
  bytes_sent_.store(0, std::memory_order_relaxed);
  now_ = {};
}

void Sender::let_go() {
  while (!role_.leave()) run();
}

void Sender::ask(uint32_t requests) {
  asked_.fetch_or(requests, std::memory_order_acq_rel);
  try_run();
}

bool Sender::lets_go_of(uint32_t stag, bool now) {
  if (!role_.try_enter()) return false;
  bool lets_go = owner_.send_queue->posted() == owner_.send_queue->retired();
  if (!lets_go) {
    asked_.fetch_or(kHasRoom | kTakeTurn | kSendLeft, std::memory_order_relaxed);
    run();
    lets_go = owner_.connection->tx.lets_go_of(*owner_.send_queue, stag, now) ||
              now_.error_handled || now_.waits == Waits::kForEver;
    if (now) run();  // completes what has failed
  }
  let_go();
  return lets_go;
}

bool Sender::take(SenderRequest request) {
  const bool there = now_.requests & request;
  now_.requests &= ~static_cast<uint32_t>(request);
  return there;
}

void Sender::run() {
  qp::Connection& connection = *owner_.connection;
  // An exchange is a locked instruction, a load is not.
  if (asked_.load(std::memory_order_acquire) != 0)
    now_.requests |= asked_.exchange(0, std::memory_order_acq_rel);
  if (take(kSendOnStream)) {
    now_.stream = owner_.stream.get();
    now_.watch = owner_.watch.get();
    now_.stage = Stage::kStarting;
  }
  if ((now_.requests & kHandleError) && !answers_first()) handle_error();
  if (now_.error_handled) {
    connection.tx.flush(connection.shared);
  } else if (has_begun()) {
    connection.tx.retire();
  }
  if (take(kTellCompleted)) owner_.ring(kSendsComplete);
  if (take(kLetGo) && now_.stream) {
    acknowledge_last();
    connection.tx.drop_pieces();
    now_.stream = nullptr;
    now_.watch = nullptr;
    now_.stage = Stage::kLetGo;
    owner_.ring(kSenderStopped);
  }
  if (now_.stage == Stage::kLetGo) return do_without_peer();
  if (take(kReleaseRegions) && !give_back_revoked()) send_failed(ENOMEM);
  if (take(kDiscard) && now_.stage == Stage::kNoStream) now_.stage = Stage::kDiscarding;
  if (now_.stage == Stage::kDiscarding) discard();
  if (!has_begun()) return;
  if (take(kDrain) && now_.closing == Closing::kNot) {
    now_.closing = Closing::kWhenPostedIsSent;
    connection.tx.stop_starting();
  }
  if (take(kFinish)) {
    now_.closing = Closing::kWhenBegunIsSent;
    connection.tx.stop_starting_now();
  }
  if (take(kHasRoom) && now_.waits == Waits::kForRoom) now_.waits = Waits::kForNothing;
  if (take(kTakeTurn) && now_.waits == Waits::kForEngine) now_.waits = Waits::kForNothing;
  // If the socket is full, what is still to be sent wakes the peer.
  if (take(kWakePeer) && now_.waits != Waits::kForRoom &&
      now_.closing != Closing::kWhenPostedIsSent && now_.stage != Stage::kFinSent)
    connection.tx.add_empty_write();
  if (take(kTellArrivals)) connection.tx.tell_arrivals();
  if (now_.waits != Waits::kForNothing) return;
  const bool all =
      take(kSendLeft) || now_.closing != Closing::kNot || (now_.requests & kHandleError);
  connection.tx.may_leave(all ? qp::Tx::Left{} : owner_.may_leave());
  pump();
}

// The peer's Reads and atomics that came before the message which is refused are answered before
// the Terminate. A responder of InfiniBand answers them before its NAK, too. Otherwise the peer's
// first error would be a flushed Read, which does not say why, or a flushed atomic that was carried
// out. False: nothing is left to answer, or it cannot be sent.
bool Sender::answers_first() {
  qp::Tx& tx = owner_.connection->tx;
  if (now_.error_handled || !has_begun() || !owner_.plan.answers_first || take(kAnswerNoMore) ||
      now_.stage == Stage::kFinSent || now_.waits == Waits::kForEver || tx.fault().raised ||
      !tx.owes_answers())
    return false;
  tx.stop_starting_now();
  return true;
}

void Sender::handle_error() {
  take(kHandleError);
  const EndPlan& plan = owner_.plan;
  qp::Connection& connection = *owner_.connection;
  now_.error_handled = true;
  if (!has_begun()) {
    if (plan.failed_slot != qp::kNoSlot)
      owner_.send_queue->fail(plan.failed_slot, plan.failed_status);
    connection.tx.flush(connection.shared);
  } else {
    now_.blamed_by_peer =
        connection.tx.abandon({.send = plan.terminate ? &*plan.terminate : nullptr,
                               .received = plan.received ? &*plan.received : nullptr,
                               .failed_slot = plan.failed_slot,
                               .failed_status = plan.failed_status});
  }
  owner_.ring(kErrorHandled);
}

void Sender::pump() {
  qp::Tx& tx = owner_.connection->tx;
  const bool on_engine = owner_.engine.on_engine_thread();
  for (int share = on_engine ? core::tuning::kEngineShare : core::tuning::kPosterShare; share > 0;
       --share) {
    if ((now_.requests & kHandleError) && !tx.owes_answers()) handle_error();
    if (!tx.fill()) {
      if (now_.requests & kHandleError) {  // no more can be answered
        handle_error();
        continue;
      }
      if (tx.fault().raised && !now_.error_handled) return report_fault();
      if (tx.left().any() && !owner_.leave(tx.left())) {
        tx.may_leave({});
        continue;
      }
      finish_if_due();
      return;
    }
    if (!send_once(on_engine)) return;
  }
  now_.waits = Waits::kForEngine;
  owner_.send_later(kContinue);
}

// Acknowledges what was received even if the queue pair ends in error, if the socket has room.
void Sender::acknowledge_last() {
  qp::Tx& tx = owner_.connection->tx;
  if (now_.stage == Stage::kFinSent || now_.waits != Waits::kForNothing ||
      !tx.fill_acknowledgements())
    return;
  const long sent = send_pieces();
  if (sent > 0) owner_.options.counters->bytes_sent.add(static_cast<uint64_t>(sent));
}

void Sender::report_fault() {
  const qp::TxFault& fault = owner_.connection->tx.fault();
  report_error({.terminate = fault.terminate,
                .event = fault.local_access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_FATAL,
                .cause = fault.cause,
                .error = EIO,
                .send_failed = true});
}

// The engine begins the end and then asks for kHandleError.
void Sender::report_error(const EndPlan& error) {
  if (now_.found.error != 0) return;
  now_.found = error;
  owner_.ring(kErrorFound);
}

// The peer of a queue pair connected by number has gone without a Terminate or an error. As with
// InfiniBand's retries, only something to be sent finds out; with unreliable service nothing does.
void Sender::do_without_peer() {
  if (!owner_.by_number.load(std::memory_order_relaxed) || now_.error_handled) return;
  if (owner_.send_queue->posted() == owner_.send_queue->retired()) return;
  if (owner_.options.service == core::Service::kUnreliable)
    discard();
  else
    owner_.ring(kPeerMissed);
}

// Only the engine discards: attach(), on the engine, starts the connection that is used here, and
// does so without the role.
void Sender::discard() {
  if (now_.error_handled) return;
  if (!owner_.engine.on_engine_thread()) return owner_.ring(kContinue);
  qp::Tx& tx = owner_.connection->tx;
  tx.discard(owner_.connection->shared);
  if (tx.fault().raised) report_fault();
}

long Sender::send_pieces() {
  const auto pieces = owner_.connection->tx.pieces();
  // Read the clock first: the receiver may read it before send() returns here.
  const core::Nanoseconds time = now_.watch ? core::now() : 0;
  const long sent = now_.stream->send(pieces.data(), pieces.size());
  if (now_.watch && sent > 0) now_.watch->sent(pieces, static_cast<size_t>(sent), time);
  return sent;
}

bool Sender::send_once(bool on_engine) {
  qp::Tx& tx = owner_.connection->tx;
  const long sent = send_pieces();
  if (sent == -EAGAIN) {
    now_.waits = Waits::kForRoom;
    if (!keep_regions()) {
      send_failed(ENOMEM);
      return false;
    }
    owner_.retry_later();
    owner_.send_later(kWantWritable);
    return false;
  }
  if (sent < 0) {
    send_failed(static_cast<int>(-sent));
    return false;
  }
  if (on_engine) owner_.engine.sent(static_cast<uint64_t>(sent));
  tx.consume(static_cast<uint64_t>(sent));
  bytes_sent_.store(bytes_sent() + static_cast<uint64_t>(sent), std::memory_order_relaxed);
  owner_.options.counters->bytes_sent.add(static_cast<uint64_t>(sent));
  if (!now_.error_handled) tx.retire();
  if (now_.stage == Stage::kStarting && tx.rtr_sent()) {
    now_.stage = Stage::kSending;
    if (owner_.connection->shared.agreement.initiator) owner_.ring(kRtrSent);
  }
  if (++now_.calls_since_emss >= core::tuning::kCallsPerEmss) {
    now_.calls_since_emss = 0;
    tx.set_emss(now_.stream->emss());
  }
  return true;
}

// While the socket is full, Read Responses are not copied out of their regions unless a thread
// wants to deregister one: copying halved the bandwidth of Reads.
bool Sender::keep_regions() {
  if (now_.keeps_regions || !owner_.connection->tx.holds_regions()) return true;
  now_.keeps_regions = true;
  owner_.options.memory->join(*this);
  return give_back_revoked();  // a thread that began to wait before join() may not have asked this
                               // sender
}

// Copies only if a thread waits for a region that this queue pair holds.
bool Sender::give_back_revoked() {
  qp::Tx& tx = owner_.connection->tx;
  return !tx.holds_revoked_regions() || tx.release_regions();
}

void Sender::give_back() {
  owner_.ring(kGiveBack);
}

void Sender::forget_regions() {
  if (std::exchange(now_.keeps_regions, false)) owner_.options.memory->leave(*this);
}

// The connection cannot carry anything any more: EPIPE, ECONNRESET, ETIMEDOUT, or EFAULT when the
// application unmapped memory of an outstanding work request.
void Sender::send_failed(int error) {
  now_.waits = Waits::kForEver;
  if (now_.failure != 0) return;  // later errors only follow from the first
  // Nothing can be sent any more; and memory that caused EFAULT must not be read again.
  owner_.connection->tx.drop_pieces();
  now_.failure = error;
  owner_.ring(kSendFailed);
}

// Sends FIN once TCP has everything that had to go out.
void Sender::finish_if_due() {
  if (now_.stage == Stage::kFinSent) return;
  const qp::Tx& tx = owner_.connection->tx;
  const bool due = now_.error_handled ? !tx.pending()
                   : now_.closing == Closing::kWhenPostedIsSent
                       ? tx.idle() && !owner_.waits_for_question()
                   : now_.closing == Closing::kWhenBegunIsSent ? !tx.owes_octets()
                                                               : false;
  if (!due) return;
  now_.stage = Stage::kFinSent;
  now_.stream->shutdown_write();
  owner_.ring(kFinSent);
}

}  // namespace uiw::session
