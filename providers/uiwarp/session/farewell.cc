// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A peer's request completes there once the peer has asked whether it has arrived
// (qp/tx_acknowledgements.cc). That may be a round trip later than it is received here. A thread
// that ends a connection gives the peer that time: an adapter would have acknowledged the request
// by then. doc/decisions/021.
#include <mutex>

#include "core/assert.h"
#include "core/tuning.h"
#include "session/state.h"

namespace uiw::session {

// Waits for the engine, kLastQuestion at most. Thread: any but the engine's.
void State::let_peer_ask() {
  if (engine.in_child() || !connection->shared.expects_question()) return;
  ring(kFarewell);
  engine.wait_for(farewell_over);
  farewell_over.release();  // for later callers
}

// For ibv_destroy_qp and RESET. A thread that waits for events must not get one that nobody will
// handle: programs acknowledge the events that they have had, and then destroy (Gloo).
void State::say_farewell() {
  if (engine.in_child()) return;
  options.send_cq->hush(*send_source);
  options.recv_cq->hush(*recv_source);
  let_peer_ask();
}

// Does not wait. Thread: any.
bool State::leave_soon() {
  if (engine.in_child()) return false;
  const std::unique_lock guard(connection_lock, std::try_to_lock);
  // RESET is replacing it, or this is a signal handler and its thread holds the lock.
  if (!guard) return true;
  const qp::Shared& shared = connection->shared;
  // In this order: the question is on the ring before it is known to have come (Rx::accept()), and
  // a thread that sends the answer has taken it off the ring, and holds the role until TCP has the
  // answer.
  const bool over = farewell.load(std::memory_order_acquire) == Farewell::kOver;
  const bool expects = !over && shared.expects_question();
  const bool answers = shared.inbound_requests.size() > 0 || sender.is_running();
  if (!expects && !answers) return false;
  if (!over) ring(kFarewell);
  return true;
}

void State::begin_farewell() {
  UIW_ASSERT(engine.on_engine_thread());
  if (farewell.load(std::memory_order_relaxed) != Farewell::kNone) return;
  const bool waits = life.takes_input() && life.inbound == Inbound::kOpen &&
                     !receiver.waits_for_receive() && connection->shared.expects_question();
  if (!waits) return end_farewell();
  farewell.store(Farewell::kWaits, std::memory_order_relaxed);
  // A peer that gets no processor in all that time knows it nevertheless.
  sender.ask(kTellArrivals);
  engine.arm(farewell_timer, core::tuning::kLastQuestion);
}

void State::look_at_farewell() {
  if (farewell.load(std::memory_order_relaxed) == Farewell::kWaits &&
      !connection->shared.expects_question())
    end_farewell();
}

void State::end_farewell() {
  if (farewell.load(std::memory_order_relaxed) == Farewell::kOver) return;
  engine.disarm(farewell_timer);
  farewell.store(Farewell::kOver, std::memory_order_release);
  farewell_over.release();
  sender.try_run();  // FIN may have waited for this
}

}  // namespace uiw::session
