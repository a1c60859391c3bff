// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The queues of a queue pair: creating and connecting them, flushing receives, and withdrawing
// completions that were not polled.
#include <mutex>
#include <new>
#include <utility>

#include "core/settings.h"
#include "core/shaken.h"
#include "qp/place_shaken.h"
#include "qp/stagger.h"
#include "session/state.h"

namespace uiw::session {

// If a send work request is to blame, called after it has completed: many programs look only at the
// first completion, which should be the one that names the cause.
void State::fail_receives() {
  connection->rx.fail_receive(IBV_WC_WR_FLUSH_ERR, plan.cause);
  if (own_receives) own_receives->await_posts();  // posting threads look at the state afterwards
  {
    const std::lock_guard guard(flush_lock);
    flushes_receives = true;
  }
  flush_receives();
}

void State::flush_receives() {
  if (options.srq) return;  // shared receives stay for the other queue pairs
  const std::lock_guard guard(flush_lock);
  if (!flushes_receives) return;
  queue::Receive receive;
  bool below_limit;
  while (receives->take(receive, below_limit)) {
    ibv_wc wc{};
    wc.wr_id = receive.wr_id;
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.vendor_err = static_cast<uint32_t>(connection->shared.end.load(std::memory_order_relaxed));
    wc.opcode = IBV_WC_RECV;
    wc.qp_num = options.qp_num;
    options.counters->completed_receives.add(1);
    options.counters->failed_receives.add(1);
    options.recv_cq->push({wc, recv_source.get(), receive.frees}, true);
  }
}

// Call it before the queues that the completions refer to are freed. Thread: any, once nothing can
// complete any more.
queue::DroppedReceives State::purge_completions() {
  options.send_cq->purge(std::move(send_source));
  const bool gives_up = options.srq && connection->rx.receiving();
  const uint64_t begun = gives_up ? connection->rx.receiving_wr_id() : 0;
  queue::DroppedReceives dropped = queue::DroppedReceives::purge(
      *options.recv_cq, std::move(recv_source), gives_up ? &begun : nullptr);
  if (gives_up) options.srq->give_up();
  return dropped;
}

bool State::create_queues() {
  send_queue = qp::SendQueue::create(options.cap.max_send_wr, options.cap.max_send_sge,
                                     options.cap.max_inline_data);
  if (!options.srq)
    own_receives = queue::ReceiveQueue::create(options.cap.max_recv_wr, options.cap.max_recv_sge);
  receives = options.srq ? options.srq : own_receives.get();
  if (!send_queue || !receives) return false;
  send_queue->allow(qp::opcodes_of(options.service, options.send_with_immediate));
  send_queue->count_in(options.counters->posted_sends, options.counters->completed_sends);
  if (own_receives) own_receives->count_in(options.counters->posted_receives);
  Beginning beginning = make_beginning();
  if (!beginning) return false;
  begin_with(std::move(beginning));
  return true;
}

State::Beginning State::make_beginning() {
  return {
      .connection = std::unique_ptr<qp::Connection>(new (std::nothrow) qp::Connection),
      .sources = queue::make_sources(send_queue->freed(), receives->freed(), options.srq),
  };
}

// Any thread may be posting meanwhile; the queues stay. A thread that posts a receive in an error
// state uses the connection and its sources, with this lock held.
void State::empty_queues(Beginning&& beginning) {
  queue::DroppedReceives dropped;
  {
    const std::lock_guard guard(flush_lock);
    flushes_receives = false;
    dropped = purge_completions();
    beginning.connection->shared.told.take_over(connection->shared.told);  // the same queue pair
    begin_with(std::move(beginning));
  }
  dropped.tell(options.qp_num);
}

void State::begin_with(Beginning&& beginning) {
  send_source = std::move(beginning.sources.sends);
  recv_source = std::move(beginning.sources.receives);
  {
    const std::lock_guard guard(connection_lock);
    connection.swap(beginning.connection);
  }
  qp::Shared& shared = connection->shared;
  shared.qp_num = options.qp_num;
  shared.service = options.service;
  shared.pd = options.pd;
  shared.receive_pd = options.srq ? options.srq_pd : options.pd;
  shared.memory = options.memory;
  shared.send_queue = send_queue.get();
  shared.receive_queue = receives;
  shared.send_cq = options.send_cq;
  shared.recv_cq = options.recv_cq;
  shared.sends_first = &receiver;
  shared.send_source = send_source.get();
  shared.recv_source = recv_source.get();
  shared.counters = options.counters;
  if (const std::optional<uint64_t> drawn = core::shaken(core::Shaken::kPlacing))
    shared.place = qp::place_by(*drawn);
  shared.long_fpdus = core::settings().long_fpdus;
  shared.stagger = qp::stagger::worth_it();
  shared.acknowledged =
      core::settings().acknowledged() && options.service == core::Service::kReliable;
  shared.immediates = options.send_with_immediate;
  // The peer has unreliable service, too. Only the face that takes immediate hints has that.
  if (shared.immediates && options.service == core::Service::kUnreliable)
    shared.peer_immediates = qp::PeerImmediates::kTaken;
  timeout = 0;
  patience_with_peer = core::settings().peer_timeout_ms * core::kMillisecond;
}

}  // namespace uiw::session
