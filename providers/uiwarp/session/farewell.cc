// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a peer sends completes there when it has asked whether it has arrived
// (qp/tx_acknowledgements.cc), and that may be a round trip later than it is received here. Whoever
// ends a connection gives the peer that time: an adapter would have acknowledged it by then.
// doc/decisions/021.
#include <mutex>

#include "core/assert.h"
#include "core/tuning.h"
#include "session/state.h"

namespace uiw::session {

// Thread: any but the engine's, which it waits for; kLastQuestion at most.
void State::let_peer_ask() {
  if (engine.in_child() || !connection->shared.expects_question()) return;
  ring(kFarewell);
  engine.wait_for(farewell_over);
  farewell_over.release();  // for those who come later
}

// Of ibv_destroy_qp and RESET: who waits for events is not to get any that nobody may look after.
// Programs acknowledge the events they had, and then destroy (Gloo).
void State::say_farewell() {
  if (engine.in_child()) return;
  options.send_cq->hush(*send_source);
  options.recv_cq->hush(*recv_source);
  let_peer_ask();
}

// Nothing is waited for here. Thread: any.
bool State::leave_soon() {
  if (engine.in_child()) return false;
  const std::unique_lock guard(connection_lock, std::try_to_lock);
  if (!guard) return true;  // RESET is about to replace it, or a signal's handler is here
  const qp::Shared& shared = connection->shared;
  // The one before the other: who sends the answer has taken the request, and holds the role until
  // TCP has it.
  const bool answers = shared.inbound_requests.size() > 0 || sender.is_running();
  if (farewell.load(std::memory_order_acquire) == Farewell::kOver) return answers;
  if (!answers && !shared.expects_question()) return false;
  ring(kFarewell);
  return true;
}

void State::begin_farewell() {
  UIW_ASSERT(engine.on_engine_thread());
  if (farewell.load(std::memory_order_relaxed) != Farewell::kNone) return;
  const bool waits = life.takes_input() && life.inbound == Inbound::kOpen &&
                     !receiver.waits_for_receive() && connection->shared.expects_question();
  if (!waits) return end_farewell();
  farewell.store(Farewell::kWaits, std::memory_order_relaxed);
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
