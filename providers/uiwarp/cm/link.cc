// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/link.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "cm/manager.h"
#include "core/retry_count.h"
#include "verbs/ack_time.h"

namespace uiw::cm {

Link::Link(Manager& manager, engine::Engine& engine, bool initiator, uint32_t qp_num,
           const ConnParam& established)
    : Endpoint(manager, engine),
      initiator_(initiator),
      qp_num_(qp_num),
      established_(established) {}

Holder holder_of(Manager& manager, uint32_t qp_num) {
  const bool free_choice = manager.rules().mover == Mover::kProgram;
  return free_choice && !manager.queue_pairs().exists(qp_num) ? Holder::kStandIn
                                                              : Holder::kQueuePair;
}

int Link::establish(Endpoint& from, Manager& manager, engine::Engine& engine, StreamPtr&& stream,
                    const mpa::Agreement& agreement, core::Bytes leftover, Holder holder,
                    uint32_t qp_num, const ConnParam& established) {
  auto* link = new (std::nothrow) Link(manager, engine, agreement.initiator, qp_num, established);
  if (link == nullptr) return ENOMEM;
  // Report the application's own depths as they are in force (conformance 4.2).
  link->established_.responder_resources =
      static_cast<uint8_t>(std::min<uint16_t>(agreement.ird, 255));
  link->established_.initiator_depth = static_cast<uint8_t>(std::min<uint16_t>(agreement.ord, 255));
  link->established_.qp_num = qp_num;
  int error = 0;
  if (holder == Holder::kQueuePair) {
    error = manager.queue_pairs().attach(qp_num, std::move(stream), agreement, leftover, link);
  } else {
    link->stand_in_.reset(new (std::nothrow) StandIn(
        engine, std::move(stream), agreement,
        manager.settings().close_timeout_ms * core::kMillisecond, *link));
    if (link->stand_in_ == nullptr) error = ENOMEM;
  }
  if (error != 0) {
    link->finish();
    return error;
  }
  std::optional<uint8_t> ack_timeout;
  uint8_t rnr_retry_count = 0;
  {
    std::lock_guard hold(manager.lock());
    link->take_over(from);
    if (Id* const id = link->owner) {
      ack_timeout = id->ack_timeout;
      rnr_retry_count = id->terms.rnr_retry_count;
      link->timeout_ = ack_timeout.value_or(kUsualAckTimeout);
      id->state = IdState::kConnected;
    } else {
      link->order(kDrop);
    }
  }
  const bool program_moves = manager.rules().mover == Mover::kProgram;
  // If the program moves the queue pair, the attributes of ibv_modify_qp say this, and more.
  if (ack_timeout && !program_moves) manager.queue_pairs().set_ack_timeout(qp_num, *ack_timeout);
  // The rnr_retry_count that this end gives for its peer (rdma_connect(3)) determines how long the
  // peer's Send waits here. iWARP ignores it.
  if (program_moves && holder == Holder::kQueuePair)
    manager.queue_pairs().await_receives(
        qp_num, rnr_retry_count == core::kMostRetries && !manager.settings().rnr_wait_set);
  // RFC 5044 7.1.2(10): no part of start-up may last forever.
  if (agreement.peer_to_peer)
    engine.arm(link->deadline_, manager.settings().reply_timeout_ms * core::kMillisecond);
  // RFC 6581 5: with A=1 the connection is established when the RTR frame was sent. But a
  // responder's application is told when the Reply is out, as with iWARP adapters: an initiator
  // that was told may connect again at once, and that second request must come later. Sends that
  // are posted before the RTR frame has arrived wait for it. A program that moves its queue pair
  // itself knows at the active end from its own call that it is established; at the passive end the
  // RTR frame is the peer's "ready to use".
  if (program_moves && link->initiator_) link->announced_ = true;
  if (program_moves && (link->initiator_ || agreement.peer_to_peer))
    link->receive();
  else if (!link->initiator_ || !agreement.peer_to_peer)
    link->announce();
  return 0;
}

void Link::announce() {
  if (announced_) return;
  announced_ = true;
  std::lock_guard hold(manager_.lock());
  if (owner != nullptr) manager_.push(*owner, EventType::kEstablished, 0, &established_);
  // This order runs after the channel's notification (cm/event_notifier.h), which was posted first:
  // so no completion of a message from the peer is visible before ESTABLISHED.
  order(kReceive);
}

void Link::receive() {
  if (std::exchange(receiving_, true)) return;
  if (stand_in_)
    stand_in_->receive();
  else
    manager_.queue_pairs().receive(qp_num_);
}

void Link::disconnect() {
  if (stand_in_)
    stand_in_->disconnect();
  else
    manager_.queue_pairs().disconnect(qp_num_);
}

void Link::disconnect_for_program() {
  if (end_ == End::kCame) return wait_out();
  if (end_ == End::kBoth) return;
  end_ = End::kProgramWantsIt;
  disconnect();
}

void Link::on_first_fpdu() {
  engine_.disarm(deadline_);
  announce();
}

void Link::first_fpdu_overdue() {
  overdue_ = true;
  receive();
  disconnect();
}

void Link::on_connection_ended(int error) {
  const bool program_wants_it = end_ == End::kProgramWantsIt;
  end_ = End::kCame;
  if (!announced_) {
    ended_before_established(error);
  } else if (manager_.rules().mover == Mover::kProgram) {
    tell_end();
    if (program_wants_it) wait_out();
  } else {
    finish_with(EventType::kDisconnected, 0);
  }
}

void Link::ended_before_established(int error) {
  if (initiator_)
    finish_with(EventType::kConnectError, error == 0 ? -ECONNRESET : -error);
  else if (overdue_)
    finish_with(EventType::kUnreachable, -ETIMEDOUT);
  else
    finish_with(EventType::kRejected, manager_.rules().connection.closed);
}

void Link::tell_end() {
  engine_.disarm(deadline_);
  const std::lock_guard hold(manager_.lock());
  if (owner == nullptr) return;
  owner->state = IdState::kEnded;
  manager_.push(*owner, EventType::kDisconnected, 0);
}

// In InfiniBand, packets of the connection may still be in flight, so the queue pair must not be
// reused for twice a packet's lifetime. Here it may be reused, but programs expect the event, and
// many destroy the id when it comes. As in Linux, only a program that has called rdma_disconnect()
// gets it: ib_cm starts that time when it requests the end or answers the peer that did.
void Link::wait_out() {
  end_ = End::kBoth;
  engine_.arm(time_wait_, verbs::ack_time(timeout_));
}

void Link::waited() {
  finish_with(EventType::kTimewaitExit, 0);
}

void Link::carry_out(uint32_t orders) {
  if ((orders & kReceive) && end_ < End::kCame) receive();
  if (orders & kDisconnect) disconnect_for_program();
}

void Link::drop() {
  if (end_ >= End::kCame) return finish();
  if (stand_in_) {
    stand_in_->leave();
    return finish();
  }
  receive();
  // A queue pair that is being destroyed still refers to this object: on_connection_ended() will be
  // called and free it.
  if (!manager_.queue_pairs().forget_observer(qp_num_)) return;
  manager_.queue_pairs().disconnect(qp_num_);
  finish();
}

}  // namespace uiw::cm
