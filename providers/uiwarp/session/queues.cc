// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The queues of a queue pair: how they are made and told what they work with, how receives are
// flushed, and how completions are taken back that nobody has polled.
#include <mutex>
#include <new>
#include <utility>

#include "core/settings.h"
#include "core/shaken.h"
#include "qp/place_shaken.h"
#include "qp/stagger.h"
#include "session/state.h"

namespace uiw::session {

// Behind the work request that is to blame, if one is: many programs look at the first completion
// only, and that should be the one that says why.
void State::fail_receives() {
  connection->rx.fail_receive(IBV_WC_WR_FLUSH_ERR, plan.cause);
  if (own_receives) own_receives->await_posts();  // who posts looks at the state afterwards
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

// Before the queues that its completions refer to go. Thread: any, when nothing can complete any
// more.
void State::purge_completions() {
  options.send_cq->purge(std::move(send_source));
  options.recv_cq->purge(std::move(recv_source));
  if (options.srq && connection->rx.receiving()) options.srq->give_up();
}

bool State::create_queues() {
  auto new_sends = qp::SendQueue::create(options.cap.max_send_wr, options.cap.max_send_sge,
                                         options.cap.max_inline_data);
  auto new_receives =
      options.srq ? nullptr
                  : queue::ReceiveQueue::create(options.cap.max_recv_wr, options.cap.max_recv_sge);
  queue::ReceiveQueue* const takes_from = options.srq ? options.srq : new_receives.get();
  std::unique_ptr<qp::Connection> new_connection(new (std::nothrow) qp::Connection);
  if (!new_sends || !takes_from || !new_connection) return false;
  auto sources = queue::make_sources(new_sends->freed(), takes_from->freed(), options.srq);
  if (!sources) return false;
  new_sends->allow(qp::opcodes_of(options.service, options.send_with_immediate));
  if (connection) {
    options.counters->dropped_sends.add(send_queue->posted() - send_queue->retired());
    purge_completions();
    new_connection->shared.told.take_over(connection->shared.told);  // it is the same queue pair
  }
  new_sends->count_in(options.counters->posted_sends, options.counters->completed_sends);
  if (new_receives) new_receives->count_in(options.counters->posted_receives);
  send_source = std::move(sources.sends);
  recv_source = std::move(sources.receives);
  send_queue = std::move(new_sends);
  own_receives = std::move(new_receives);
  {
    const std::lock_guard guard(connection_lock);
    connection.swap(new_connection);
  }
  receives = takes_from;
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
  // Whoever has unreliable service has the face that has them.
  if (shared.immediates && options.service == core::Service::kUnreliable)
    shared.peer_immediates = qp::PeerImmediates::kTaken;
  timeout = 0;
  patience_with_peer = core::settings().peer_timeout_ms * core::kMillisecond;
  return true;
}

}  // namespace uiw::session
