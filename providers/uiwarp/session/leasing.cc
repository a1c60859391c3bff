// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A queue pair and its lease (progress/): how it gets one, what pollers do for it, which of its
// posts and Reads wait for them, and what the engine does after it has revoked the lease.
// doc/decisions/006 and 019.
#include <cerrno>
#include <utility>

#include "core/assert.h"
#include "core/clock.h"
#include "core/settings.h"
#include "core/tuning.h"
#include "session/state.h"

namespace uiw::session {

namespace {

namespace tuning = core::tuning;

thread_local progress::Burst burst;

progress::QueueUse use_of(const queue::CompletionQueue& cq) {
  return {.empty_polls = cq.empty_polls(), .polls = cq.polls(), .arms = cq.arms()};
}

}  // namespace

// --- What is deferred. Thread: any ---

void State::after_post(uint32_t requests, uint64_t bytes) {
  if (may_defer(requests, bytes)) return;
  deferred_posts.take();  // sent now, with this post
  if (waiting_acknowledgements.take()) waiting_acknowledgements.backoff.judge(false);
  sender.try_run();
  burst.ended(core::ticks());
}

bool State::may_defer(uint32_t requests, uint64_t bytes) {
  if (requests >= tuning::kEnoughRequests || bytes >= tuning::kEnoughBytes ||
      !core::settings().poll_progress)
    return false;
  const uint64_t now = core::ticks();
  if (!burst.posted(now, core::ticks_in(tuning::kBurstGap))) return false;
  progress::Lease* const lease = pollers.load(std::memory_order_acquire);
  if (!lease) {
    const uint32_t count = unleased_posts.load(std::memory_order_relaxed);
    unleased_posts.store(count + 1, std::memory_order_relaxed);
    if (count % tuning::kAskForLease == 0) ring(kBurst);
    return false;
  }
  lease->posted(now);
  if (deferred_posts.backoff.passes() || !deferred_posts.add(requests, bytes, now)) return false;
  if (lease->deferred(now)) burst.ended(core::ticks());
  // The engine, revoking the lease, either sees what waits or is seen here.
  return pollers.load(std::memory_order_seq_cst) != nullptr;
}

qp::Tx::Left State::may_leave() {
  if (!pollers.load(std::memory_order_relaxed)) return {};
  const bool acknowledgements = !waiting_acknowledgements.backoff.passes();
  return {.reads = !coalesced_reads.backoff.passes(),
          .answers = acknowledgements,
          .questions = acknowledgements};
}

// Acknowledgements may wait until the engine's next look at the lease, however late: no post of the
// program waits for them, and bringing the look forward for each message costs more than sending
// them at once.
bool State::leave(qp::Tx::Left what) {
  progress::Lease* const lease = pollers.load(std::memory_order_acquire);
  if (!lease) return false;
  const uint64_t now = core::ticks();
  if (what.answers || what.questions) waiting_acknowledgements.begin(now);
  if (what.reads) {
    coalesced_reads.begin(now);
    lease->deferred(now);
  }
  // The engine, revoking the lease, either sees what waits or is seen here.
  return pollers.load(std::memory_order_seq_cst) != nullptr;
}

void State::send_later(Doorbell bit) {
  if (pollers.load(std::memory_order_relaxed)) {
    unsent.store(true, std::memory_order_seq_cst);
    // The engine, revoking the lease, either sees this or is seen here.
    if (pollers.load(std::memory_order_seq_cst)) return;
    if (!unsent.exchange(false, std::memory_order_acq_rel)) return;
  }
  ring(bit);
}

void State::retry_later() {
  retry_at.store(core::ticks() + core::ticks_in(tuning::kRetryFullSocket),
                 std::memory_order_relaxed);
}

// --- What pollers do. Thread: the lease's holder ---

bool State::send_waiting(progress::Deferral& what, bool left) {
  if (!what.take()) return false;
  what.backoff.judge(left);
  if (&what == &deferred_posts)
    sender.try_run();
  else
    sender.ask(kSendLeft);
  return true;
}

bool State::send_deferred() {
  const bool acknowledgements = send_waiting(waiting_acknowledgements, false);
  return send_waiting(deferred_posts, false) || acknowledgements;
}

void State::send_overdue(uint64_t now, uint64_t ticks, bool left) {
  progress::Deferral* const all[] = {&waiting_acknowledgements, &deferred_posts, &coalesced_reads};
  for (progress::Deferral* const what : all)
    if (what->has_waited(now, ticks)) send_waiting(*what, left);
}

bool State::send_unsent(bool at_once) {
  if (!unsent.load(std::memory_order_seq_cst)) return false;
  if (!at_once && core::ticks() < retry_at.load(std::memory_order_relaxed)) return false;
  if (!unsent.exchange(false, std::memory_order_acq_rel)) return false;
  const uint64_t before = sender.bytes_sent();
  sender.ask(kHasRoom | kTakeTurn);
  return sender.bytes_sent() != before;
}

// --- Granting and revoking. Thread: engine ---

bool State::owns_receiver() {
  return !lease() || lease()->revoke(*this);
}

// With acknowledgements a program polls its send CQ for them and its receive CQ for messages, in
// turn. With a lease at one queue only, nobody would receive while it polls the other.
progress::Lease* State::lease_of(queue::CompletionQueue& cq) {
  const bool own = &cq == options.send_cq || &cq == options.recv_cq;
  if (!connection->shared.acknowledged || !own) return progress::Lease::of(engine, cq);
  return progress::Lease::of_both(engine, *options.recv_cq, *options.send_cq);
}

void State::consider_grant(size_t bytes, size_t directly) {
  if (!core::settings().poll_progress) return;
  const progress::Grant grant = grants.on_arrival({.at = engine.now(),
                                                   .bytes = bytes,
                                                   .completed = connection->rx.completed(),
                                                   .mid_message = connection->rx.mid_message(),
                                                   .send_queue = use_of(*options.send_cq),
                                                   .receive_queue = use_of(*options.recv_cq)});
  if (is_received_by_pollers()) return;
  std::shared_ptr<queue::CompletionQueue> other;
  if (grant == progress::Grant::kAskForeign) other = find_busy_poller(bytes + directly);
  queue::CompletionQueue* const to = grant == progress::Grant::kToSendQueue      ? options.send_cq
                                     : grant == progress::Grant::kToReceiveQueue ? options.recv_cq
                                                                                 : other.get();
  // The beginning and the end of a connection are left to the engine.
  if (!to || waits_for_question() || !life.is_settled() || !receiver.is_settled() ||
      !stream->quiet())
    return;
  progress::Lease* const granted = lease_of(*to);
  if (!granted || (lease() && lease() != granted) || !granted->grant(*this, true)) return;
  foreign = std::move(other);
  if (!foreign) pollers.store(granted, std::memory_order_release);
}

// Large arrivals go to a poller of a foreign queue only when no processor is left for the engine:
// that poller may wait for something else that is urgent.
std::shared_ptr<queue::CompletionQueue> State::find_busy_poller(size_t bytes) {
  if (!options.busy_poller) return nullptr;
  auto queue = options.busy_poller->get();
  if (!queue || queue.get() == options.send_cq || queue.get() == options.recv_cq) return nullptr;
  if (!grants.foreign_is_busy(queue.get(), use_of(*queue), sender.bytes_sent())) return nullptr;
  if (bytes > tuning::kSmallArrival && !options.busy_poller->processors_are_short(engine.now()))
    return nullptr;
  return queue;
}

void State::on_full_socket() {
  if (!core::settings().poll_progress || lease() || !life.connected()) return;
  if (grants.on_full_socket(engine.now(), use_of(*options.send_cq))) join_pollers();
}

// Joins the lease of the send CQ, for sending only.
void State::join_pollers() {
  UIW_ASSERT(engine.on_engine_thread());
  if (lease() || !life.connected()) return;
  progress::Lease* const granted = lease_of(*options.send_cq);
  if (granted && granted->grant(*this, false)) pollers.store(granted, std::memory_order_release);
}

void State::on_revoked(bool was_received) {
  UIW_ASSERT(engine.on_engine_thread());
  grants.on_revoked();
  unleased_posts.store(0, std::memory_order_relaxed);
  // This may be the last reference to the foreign queue, whose lease is destroyed with it. The
  // caller, which is that lease, does not touch itself after this call.
  const std::shared_ptr<queue::CompletionQueue> gone = std::move(foreign);
  // A thread that posts either sees this, or what it deferred is seen here.
  pollers.store(nullptr, std::memory_order_seq_cst);
  if (deferred_posts.take()) sender.try_run();
  const bool acknowledgements = waiting_acknowledgements.take();
  if (coalesced_reads.take() || acknowledgements) sender.ask(kSendLeft);
  send_unsent(true);
  if (was_received) receiver.take_back();
}

}  // namespace uiw::session
