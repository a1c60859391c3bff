// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "progress/lease.h"

#include <sched.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "core/assert.h"
#include "core/clock.h"
#include "core/flag.h"

namespace uiw::progress {

namespace tuning = core::tuning;

Lease::Lease(engine::Engine& engine, queue::CompletionQueue& cq)
    : engine_(engine),
      cq_(cq),
      policy_(core::ticks_in(tuning::kLeaseSilence), core::ticks_in(tuning::kMostDeferred / 2)),
      most_deferred_(core::ticks_in(tuning::kMostDeferred)),
      silence_(core::ticks_in(tuning::kLeaseSilence)),
      plan_(most_deferred_, silence_) {}

Lease* Lease::of(engine::Engine& engine, queue::CompletionQueue& cq) {
  if (!cq.set_affinity(engine)) return nullptr;
  if (queue::Progress* there = cq.progress()) return static_cast<Lease*>(&there->actual());
  std::unique_ptr<Lease> lease(new (std::nothrow) Lease(engine, cq));
  if (!lease) return nullptr;
  lease->buffer_ = core::allocate_pages(kBufferSize);
  if (!lease->buffer_) return nullptr;
  Lease* const made = lease.get();
  cq.set_progress(std::move(lease));
  return made;
}

// The progress hook of a queue whose pollers share the lease of another queue. Keeps that queue,
// and so its lease, alive.
class Lease::Shared final : public queue::Progress {
 public:
  Shared(std::shared_ptr<queue::CompletionQueue> owner, Lease& lease)
      : owner_(std::move(owner)), lease_(lease) {}
  void progress() override { lease_.progress(); }
  void on_arm() override { lease_.on_arm(); }
  queue::Progress& actual() override { return lease_; }

 private:
  const std::shared_ptr<queue::CompletionQueue> owner_;
  Lease& lease_;
};

Lease* Lease::of_both(engine::Engine& engine, queue::CompletionQueue& first,
                      queue::CompletionQueue& second) {
  const bool is_first = first.progress() || !second.progress();
  queue::CompletionQueue& owner = is_first ? first : second;
  queue::CompletionQueue& other = is_first ? second : first;
  Lease* const lease = of(engine, owner);
  if (!lease || &owner == &other) return lease;
  if (other.progress()) return &other.progress()->actual() == lease ? lease : nullptr;
  if (!other.set_affinity(engine)) return nullptr;
  std::shared_ptr<queue::CompletionQueue> kept = lease->cq_.weak_from_this().lock();
  if (!kept) return nullptr;
  std::unique_ptr<Shared> shared(new (std::nothrow) Shared(std::move(kept), *lease));
  if (!shared) return nullptr;
  other.set_progress(std::move(shared));
  return lease;
}

bool Lease::grant(Member& member, bool receiving) {
  UIW_ASSERT(engine_.on_engine_thread());
  if (!role_.try_enter()) return false;
  const size_t count = count_.load(std::memory_order_relaxed);
  const bool room = member.lease_ || count < members_.size();
  if (room && !member.lease_) {
    members_[count] = &member;
    count_.store(count + 1, std::memory_order_relaxed);
    member.lease_ = this;
  }
  if (room && receiving) {
    member.received_ = true;
    member.idle_rounds_ = 0;
    member.pause_receiving();
  }
  if (room && !watched()) {
    progress_at_ = core::ticks();
    policy_.begin(cq_.polls());
    look_in(silence_, progress_at_);
  }
  leave();
  return room;
}

bool Lease::revoke(Member& member) {
  UIW_ASSERT(engine_.on_engine_thread());
  core::put_up(member.engine_waits_);
  if (!role_.enter()) return false;
  if (!member.engine_waits_.exchange(false, std::memory_order_relaxed)) {
    leave();  // a poller that left was quicker: it has posted `member` already
    return false;
  }
  const auto all = members();
  remove(static_cast<size_t>(std::find(all.begin(), all.end(), &member) - all.begin()));
  leave();
  member.on_revoked(std::exchange(member.received_, false));
  return true;
}

void Lease::remove(size_t index) {
  const size_t left = count_.load(std::memory_order_relaxed) - 1;
  members_[index]->lease_ = nullptr;
  members_[index] = members_[left];
  count_.store(left, std::memory_order_relaxed);
  if (left == 0) engine_.unwatch(*this);
}

// A thread that found the role taken has set its flag before, so the flags are looked at before
// each attempt to leave.
void Lease::leave() {
  do {
    const bool armed = core::take_down(armed_);
    if (core::take_down(look_missed_)) send_old(core::ticks(), false);
    for (Member* const member : members()) {
      if (core::take_down(member->engine_waits_)) member->post_to_engine();
      if (armed) {
        member->send_deferred();
        member->send_coalesced();
        member->return_wanted();
      }
    }
  } while (!role_.leave());
}

void Lease::progress() {
  if (count_.load(std::memory_order_relaxed) == 0 || engine_.in_child()) return;
  if (!role_.try_enter()) return;
  bool done = false;
  const auto all = members();
  for (Member* const member : all) {
    done |= member->send_deferred();
    done |= member->send_on();
    if (!member->received_) continue;
    if (member->receive({buffer_.get(), kBufferSize})) {
      member->idle_rounds_ = 0;
      done = true;
    } else if (++member->idle_rounds_ == tuning::kIdleRounds && all.size() > 1) {
      member->return_wanted();
    }
  }
  if (!done)
    for (Member* const member : all) done |= member->send_coalesced();
  const bool yield = !done && ++empty_rounds_ % tuning::kLeasedPollsPerYield == 0;
  progress_at_ = core::ticks();
  // Another thread may have deferred something since this round passed its queue pair.
  if (const uint64_t in = plan_.polled(progress_at_))
    look_in(std::min(in, due_in(progress_at_)), progress_at_);
  leave();
  if (yield) sched_yield();
}

void Lease::set_look(uint64_t ticks, uint64_t now) {
  if (engine_.on_engine_thread()) {
    engine_.watch(*this, core::time_of(ticks));
  } else {
    engine_.put_off(*this, core::time_of(ticks));
  }
  plan_.set(now, ticks);
}

// For the holder. A thread that defers something meanwhile either sees the later time and brings it
// forward, or this thread sees what it deferred.
void Lease::look_in(uint64_t ticks, uint64_t now) {
  {
    const std::lock_guard hold(look_lock_);
    set_look(ticks, now);
  }
  if (ticks > most_deferred_ && oldest() != UINT64_MAX) bring_forward(now);
}

void Lease::bring_forward(uint64_t now) {
  const std::lock_guard hold(look_lock_);
  if (plan_.is_late(now)) set_look(most_deferred_, now);
}

bool Lease::deferred(uint64_t now) {
  if (!plan_.deferred(now)) return false;
  bring_forward(now);
  return true;
}

// For the holder. Sends what has waited for half of kMostDeferred.
void Lease::send_old(uint64_t now, bool left) {
  for (Member* const member : members()) member->send_overdue(now, most_deferred_ / 2, left);
}

// For the holder. In how many ticks the oldest deferred item is due; UINT64_MAX: nothing waits.
uint64_t Lease::due_in(uint64_t now) const {
  const uint64_t first = oldest();
  if (first == UINT64_MAX) return UINT64_MAX;
  const uint64_t due = first + most_deferred_;
  return due > now ? due - now : 1;
}

uint64_t Lease::oldest() const {
  uint64_t first = UINT64_MAX;
  for (const Member* const member : members()) first = std::min(first, member->waits_since());
  return first;
}

void Lease::on_arm() {
  if (count_.load(std::memory_order_relaxed) == 0 || engine_.in_child()) return;
  core::put_up(armed_);
  if (role_.enter()) leave();
}

bool Lease::needs_polls(const Member* member) {
  return member->received_ || member->has_unsent();
}

bool Lease::any(bool (*is)(const Member*)) const {
  const auto all = members();
  return std::any_of(all.begin(), all.end(), is);
}

void Lease::expire() {
  const uint64_t now = core::ticks();
  look_missed_.store(true, std::memory_order_seq_cst);
  if (!role_.enter()) {  // a poller holds the role, and sends what is due before it leaves
    const std::lock_guard hold(look_lock_);
    set_look(most_deferred_, now);
    return;
  }
  look_missed_.store(false, std::memory_order_relaxed);
  const LeasePolicy::Verdict verdict =
      policy_.look({.now = now,
                    .empty_poll_at = progress_at_,
                    .posted_at = posted_at_.load(std::memory_order_relaxed),
                    .polls = cq_.polls(),
                    .sends = any([](const Member* one) { return one->is_sending(); }),
                    .needs_polls = any(needs_polls)});
  const uint64_t at_the_latest = plan_.looked();
  send_old(now, verdict.left);
  std::array<Member*, tuning::kMostLeased> revoked{};
  size_t count = 0;
  for (size_t i = members().size(); i > 0 && verdict.end != LeaseEnd::kNot; --i) {
    if (verdict.end == LeaseEnd::kOfPolls && !needs_polls(members_[i - 1])) continue;
    revoked[count++] = members_[i - 1];
    remove(i - 1);
  }
  if (!members().empty()) {
    const uint64_t then = core::ticks();
    look_in(std::min({due_in(then), verdict.look_in, at_the_latest}), then);
  }
  leave();
  for (Member* const member : std::span(revoked).first(count))
    member->on_revoked(std::exchange(member->received_, false));
}

}  // namespace uiw::progress
