// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "session/poll_group.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/flag.h"
#include "session/state.h"

namespace uiw::session {

namespace {

// How soon the engine looks whether somebody still polls: at first, and where polls went on for
// long. Pollers put it off, about when half of that has passed.
constexpr core::Nanoseconds kFirstLook = 50 * core::kMicrosecond;
constexpr core::Nanoseconds kLastLook = 2 * core::kMillisecond;

// Polls that always find something never come here. So many looks of the engine may pass like that,
// for whoever has received much at once deals with it first.
constexpr uint32_t kLooksMissed = 5;
constexpr core::Nanoseconds kNextLook = 500 * core::kMicrosecond;

// After so many looks without octets a queue pair costs the others a system call per poll for
// nothing.
constexpr uint32_t kLooksInVain = 8;

// In ticks.
uint64_t half(core::Nanoseconds interval) {
  return core::ticks_in(interval / 2);
}

// What a spinning thread waits for may need its CPU: about 10 us of polls (doc/decisions/004).
constexpr uint32_t kPollsPerYield = 32;

}  // namespace

PollGroup* PollGroup::of(engine::Engine& engine, queue::CompletionQueue& cq) {
  if (!cq.claim(&engine)) return nullptr;
  if (queue::Progress* there = cq.progress()) return static_cast<PollGroup*>(there);
  std::unique_ptr<PollGroup> group(new (std::nothrow) PollGroup(engine, cq));
  if (!group) return nullptr;
  group->buffer_ = core::allocate_pages(kBufferSize);
  if (!group->buffer_) return nullptr;
  PollGroup* const made = group.get();
  cq.set_progress(std::move(group));
  return made;
}

bool PollGroup::lend(State& state, bool receiving) {
  if (!role_.try_enter()) return false;
  const size_t count = count_.load(std::memory_order_relaxed);
  const bool room = state.group || count < kMost;
  if (room && !state.group) {
    members_[count] = &state;
    count_.store(count + 1, std::memory_order_relaxed);
    state.group = this;
    state.octets_at_look = state.sender.bytes_sent();
    state.has_poller.store(true, std::memory_order_relaxed);
  }
  if (room && receiving) {
    state.lent = true;
    state.looks_in_vain = 0;
    state.stream->pause_receive();
  }
  if (room && !watched()) {
    polls_seen_ = cq_.polls();
    looks_missed_ = 0;
    interval_ = kFirstLook;
    put_off_at_ = core::ticks() + half(interval_);
    engine_.watch(*this, interval_);
  }
  leave();
  return room;
}

bool PollGroup::take_back(State& state, bool come_back) {
  if (come_back) state.deferred.store(true, std::memory_order_release);
  if (!(come_back ? role_.enter() : role_.try_enter())) return false;
  if (come_back && !state.deferred.exchange(false, std::memory_order_relaxed)) {
    leave();  // a poller was quicker: `state` is posted already
    return false;
  }
  remove(
      static_cast<size_t>(std::find(members_.begin(), members_.end(), &state) - members_.begin()));
  leave();
  state.on_returned();
  return true;
}

void PollGroup::remove(size_t index) {
  const size_t left = count_.load(std::memory_order_relaxed) - 1;
  members_[index]->group = nullptr;
  members_[index] = members_[left];
  count_.store(left, std::memory_order_relaxed);
  if (left == 0) engine_.unwatch(*this);
}

// Whoever knocked has said before what it wants.
void PollGroup::leave() {
  do {
    const size_t count = count_.load(std::memory_order_relaxed);
    const bool sleepy = core::take_down(sleepy_);
    for (size_t i = 0; i < count; ++i) {
      State& state = *members_[i];
      if (core::take_down(state.deferred)) engine_.post(state);
      if (sleepy) {
        state.send_what_waits();
        state.ring(kReturn);
      }
    }
  } while (!role_.leave());
}

void PollGroup::progress() {
  if (count_.load(std::memory_order_relaxed) == 0 || engine_.in_child()) return;
  if (!role_.try_enter()) return;
  bool done = false;
  ++rounds_;
  const size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    State& state = *members_[i];
    done |= state.send_unsent();
    done |= state.send_unfinished(false);
    if (state.lent && state.receive_inline({buffer_.get(), kBufferSize})) {
      state.looks_in_vain = 0;
      done = true;
    }
  }
  const bool vain = !done;
  for (size_t i = 0; vain && i < count; ++i) done |= members_[i]->send_gathered();
  const bool yield = !done && ++vain_ % kPollsPerYield == 0;
  put_off();
  leave();
  if (yield) sched_yield();
}

void PollGroup::put_off() {
  const uint64_t now = core::ticks();
  if (now < put_off_at_ || count_.load(std::memory_order_relaxed) == 0) return;
  interval_ = std::min(interval_ * 2, kLastLook);
  put_off_at_ = now + half(interval_);
  look_for_silent();
  engine_.put_off(*this, interval_);
}

// One alone costs nobody else a system call.
void PollGroup::look_for_silent() {
  const size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; count > 1 && i < count; ++i) {
    State& state = *members_[i];
    if (state.lent && ++state.looks_in_vain == kLooksInVain) state.ring(kReturn);
  }
}

bool PollGroup::needs_polls(const State& state) {
  return state.lent || state.unfinished.load(std::memory_order_relaxed);
}

bool PollGroup::needs_polls() const {
  const auto end = members_.begin() + count_.load(std::memory_order_relaxed);
  return std::any_of(members_.begin(), end, [](const State* state) { return needs_polls(*state); });
}

bool PollGroup::somebody_posts() const {
  const auto end = members_.begin() + count_.load(std::memory_order_relaxed);
  return std::any_of(members_.begin(), end, [](const State* state) {
    return state->sender.bytes_sent() != state->octets_at_look;
  });
}

void PollGroup::on_arm() {
  if (count_.load(std::memory_order_relaxed) == 0 || engine_.in_child()) return;
  sleepy_.store(true, std::memory_order_relaxed);
  if (role_.enter()) leave();
}

void PollGroup::expire() {
  if (!role_.try_enter()) {  // a poller is inside
    engine_.watch(*this, kNextLook);
    return;
  }
  const uint32_t polls = cq_.polls();
  const bool polled = std::exchange(polls_seen_, polls) != polls;
  const bool needed = needs_polls();
  // Who posts on and on has no time to poll; as long as nothing waits for that, what it posts
  // lingers.
  const bool posted = !polled && !needed && somebody_posts();
  const bool missed = std::exchange(rounds_seen_, rounds_) == rounds_ && needed;
  looks_missed_ = missed ? looks_missed_ + 1 : 0;
  std::array<State*, kMost> returned{};
  size_t count = 0;
  if ((polled || posted) && looks_missed_ < kLooksMissed) {
    // The first looks come before anybody had much time.
    for (size_t i = count_.load(std::memory_order_relaxed); i > 0 && interval_ >= kNextLook; --i)
      members_[i - 1]->send_overdue();
    interval_ = std::min(interval_ * 2, kLastLook);
    look_for_silent();
    engine_.watch(*this, posted ? kNextLook : std::min(interval_, kNextLook));
  } else {
    // Those for whom posting is enough stay.
    const bool stay = !polled && somebody_posts();
    for (size_t i = count_.load(std::memory_order_relaxed); i > 0; --i) {
      if (stay && !needs_polls(*members_[i - 1])) continue;
      returned[count++] = members_[i - 1];
      remove(i - 1);
    }
    if (count_.load(std::memory_order_relaxed) > 0) engine_.watch(*this, kNextLook);
  }
  leave();
  for (size_t i = 0; i < count; ++i) returned[i]->on_returned();
}

}  // namespace uiw::session
