// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// When a queue pair is lent to those who poll, what they do with it, and what the engine does with
// it afterwards. Thread: engine, but for receive_inline().
#include <cerrno>
#include <utility>

#include "core/clock.h"
#include "core/settings.h"
#include "session/state.h"

namespace uiw::session {

namespace {

// Polls in vain between two arrivals that make a spinning thread, and how many arrivals in a row
// (or full sockets, for sending) have to find one: a program that polls once or twice after each
// event does not spin.
constexpr uint32_t kPollsOfSpinner = 32;
constexpr int kArrivals = 4;

// Where it shares its CPU with the threads that answer it, a spinning thread never gets to poll in
// vain: they come first, and its next poll finds what it waits for. So it counts as well when few
// octets come that complete something, soon after others, and the queue was polled in between: a
// page, with what goes around it.
constexpr size_t kAnswer = 4096 + 128;
constexpr core::Nanoseconds kSoon = 50 * core::kMicrosecond;

// A stream is blocked every 20 to 50 us. Whoever shares a CPU with another spinning thread, and
// yields, does not get to spin between any two of them, but between four within this time.
constexpr core::Nanoseconds kBlockedSpins = 10 * core::kMillisecond;

// Nobody spins on our queues: how many arrivals until it is asked who spins on others. Where those
// arrivals leave a spinning thread hardly any time it polls a few times between two of them.
constexpr uint32_t kArrivalsPerStranger = 8;

// What they may have to send for each of these arrivals: a Read of 64 KiB, in segments of an
// Ethernet's size. More fills the socket.
constexpr uint64_t kStrangersAnswer = 64 * 1024 + 1024;

// How long a poller leaves a full socket alone. Meanwhile TCP gets rid of enough for the next call
// to be worth it.
constexpr core::Nanoseconds kRetry = 10 * core::kMicrosecond;

}  // namespace

// Whether somebody span on `cq` since this was asked last.
bool State::spun_on(const queue::CompletionQueue& cq, Seen& seen, bool answered) {
  const Seen now{cq.empty_polls(), cq.polls(), cq.arms()};
  const Seen before = std::exchange(seen, now);
  if (now.arms != before.arms) return false;
  return now.empty_polls - before.empty_polls >= kPollsOfSpinner ||
         (answered && now.polls != before.polls);
}

bool State::owns_receiver() {
  return !group || group->take_back(*this, true);
}

// Somebody who spins on a queue that is none of ours. What takes long is for him only when there is
// no processor left for the engine: he may wait for something else that is urgent. To answer large
// Reads is the engine's in any case, which sleeps until the socket has room.
std::shared_ptr<queue::CompletionQueue> State::spinning_stranger(size_t octets) {
  if (!options.spinner || ++unpolled_arrivals % kArrivalsPerStranger != 0) return nullptr;
  auto stranger = options.spinner->get();
  if (!stranger || stranger.get() == options.send_cq || stranger.get() == options.recv_cq)
    return nullptr;
  const bool spun = spun_on(*stranger, seen_stranger, false);
  const uint64_t total = sender.bytes_sent();
  const uint64_t sent = total - std::exchange(sent_at_stranger, total);
  const bool same = std::exchange(last_stranger, stranger.get()) == stranger.get();
  const bool small_answers = sent <= kStrangersAnswer * kArrivalsPerStranger;
  stranger_spins = same && spun && small_answers ? stranger_spins + 1 : 0;
  if (stranger_spins < kArrivals) return nullptr;
  const bool wanted = octets <= kAnswer || options.spinner->processors_are_short(arrived_at);
  return wanted ? stranger : nullptr;
}

void State::consider_lending(size_t octets, size_t directly) {
  if (!core::settings().poll_progress) return;
  const core::Nanoseconds before = std::exchange(arrived_at, engine.now());
  const uint32_t completed = connection->rx.completed();
  const bool completes = std::exchange(completed_at, completed) != completed;
  const bool answered = completes && octets <= kAnswer && arrived_at - before < kSoon;
  const bool continues = std::exchange(mid_message, connection->rx.mid_message());
  queue::CompletionQueue* spun = nullptr;
  if (spun_on(*options.send_cq, seen_send_cq, answered)) spun = options.send_cq;
  if (options.recv_cq != options.send_cq && spun_on(*options.recv_cq, seen_recv_cq, answered))
    spun = options.recv_cq;
  std::shared_ptr<queue::CompletionQueue> stranger;
  if (spun) {
    ++spins;
  } else {
    // Between the pieces of one message there is no time to spin.
    if (!continues) spins = 0;
    stranger = spinning_stranger(octets + directly);
  }
  if (lent || (!stranger && (!spun || spins < kArrivals))) return;
  // Nobody but the engine sees a connection begin or end.
  if (!life.is_settled() || !stream->quiet()) return;
  PollGroup* const to = PollGroup::of(engine, stranger ? *stranger : *spun);
  if (to && (!group || group == to) && to->lend(*this, true)) host = std::move(stranger);
}

// A stream that is often blocked while somebody spins: the spinning thread could send itself.
void State::consider_poller_sending() {
  if (!core::settings().poll_progress || group || !life.connected()) return;
  if (engine.now() - blocked_since > kBlockedSpins) {
    blocked_since = engine.now();
    blocked_spins = 0;
  }
  if (spun_on(*options.send_cq, seen_when_blocked, false)) ++blocked_spins;
  if (blocked_spins < kArrivals) return;
  blocked_spins = 0;
  join_pollers();
}

// For sending alone: of the queue that completes what is sent.
void State::join_pollers() {
  if (group || !life.connected()) return;
  if (PollGroup* const to = PollGroup::of(engine, *options.send_cq)) to->lend(*this, false);
}

bool State::send_unfinished(bool at_once) {
  if (!unfinished.load(std::memory_order_seq_cst)) return false;
  if (!at_once && core::ticks() < retry_at.load(std::memory_order_relaxed)) return false;
  if (!unfinished.exchange(false, std::memory_order_acq_rel)) return false;
  const uint64_t before = sender.bytes_sent();
  sender.ask(kHasRoom | kTakeTurn);
  return sender.bytes_sent() != before;
}

void State::send_later(uint32_t bit) {
  if (has_poller.load(std::memory_order_relaxed)) {
    unfinished.store(true, std::memory_order_seq_cst);
    // The engine, taking the queue pair from its pollers, either sees this or is seen here.
    if (has_poller.load(std::memory_order_seq_cst)) return;
    if (!unfinished.exchange(false, std::memory_order_acq_rel)) return;
  }
  ring(bit);
}

void State::retry_later() {
  retry_at.store(core::ticks() + core::ticks_in(kRetry), std::memory_order_relaxed);
}

bool State::receive_inline(std::span<uint8_t> buffer) {
  if (stopped) return false;
  qp::RxStatus status = qp::RxStatus::kOk;
  long got = 1;
  if (connection->rx.wants_sender()) {
    if (sender.is_running()) return false;
    status = connection->rx.resume();
  } else {
    got = receive_once(buffer, status);
    if (got == -EAGAIN) return false;
  }
  if (got > 0) {
    hear_news();
    if (status == qp::RxStatus::kOk || status == qp::RxStatus::kWantSender) return true;
  }
  stopped = true;
  stopped_by = got > 0 ? 1 : got;
  stopped_status = status;
  ring(kStopped);
  return got > 0;
}

void State::on_returned() {
  spins = stranger_spins = 0;
  // The group goes with its queue, should nobody else have that any more: the caller is done with
  // it.
  const std::shared_ptr<queue::CompletionQueue> left = std::move(host);
  // Whoever posts either sees this or is seen here.
  has_poller.store(false, std::memory_order_seq_cst);
  send_what_waits();
  send_unfinished(true);
  if (!std::exchange(lent, false)) return;
  // With octets that nobody may look past, or at an end that the socket does not tell twice,
  // on_stopped() decides how it goes on.
  if (stopped) return;
  if (!connection->rx.wants_sender()) return stream->resume_receive();
  life.pause = Pause::kForSender;
  ring(kSendsComplete);  // perhaps; sends_first() says whether
}

void State::on_stopped() {
  if (!std::exchange(stopped, false) || !stream) return;
  if (stopped_by <= 0) {
    stream->end(stopped_by);
    return;
  }
  stream->resume_receive();
  if (life.takes_input()) handle(stopped_status);
}

}  // namespace uiw::session
