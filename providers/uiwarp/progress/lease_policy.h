// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// When the engine looks at a lease, and what it decides then. Pure, except for state that several
// threads read. Times are ticks (core/clock.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace uiw::progress {

// How often the engine looks at a lease.
enum class LookPace : uint8_t {
  kLate,  // nothing is deferred: polls postpone the look, so that the engine sleeps
  kSoon,  // something is deferred now and then: the engine looks periodically, and polls do not
          // change that
};

// Plans the engine's looks so that nothing that is deferred waits longer than `soon`. In many
// virtual machines each change of such a short timer costs a poller 20 us or more. So the look is
// brought forward once, when something is deferred; after that only the engine renews the timer, at
// each look, until nothing was deferred since the last one.
class LookPlan {
 public:
  LookPlan(uint64_t soon, uint64_t late) : soon_(soon), late_(late) {}

  // Something was deferred, and other threads can see it already. True: the caller must have the
  // engine look in `soon`. Thread: any.
  bool deferred(uint64_t now) {
    if (!lately_.load(std::memory_order_relaxed)) lately_.store(true, std::memory_order_relaxed);
    return is_late(now);
  }
  bool is_late(uint64_t now) const { return at_.load(std::memory_order_seq_cst) > now + soon_; }
  // A poll has sent what was deferred. Returns in how many ticks from now the engine is to look; 0:
  // keep the plan. The plan changes only in the second half of its time, as that takes a system
  // call. Not for concurrent use.
  uint64_t polled(uint64_t now) const {
    if (pace_.load(std::memory_order_relaxed) == LookPace::kSoon) return 0;
    return at_.load(std::memory_order_relaxed) > now + late_ / 2 ? 0 : late_;
  }
  // The engine looks. Returns in how many ticks it must look again at the latest. Thread: engine.
  uint64_t looked() {
    const bool lately = lately_.exchange(false, std::memory_order_relaxed);
    pace_.store(lately ? LookPace::kSoon : LookPace::kLate, std::memory_order_relaxed);
    return lately ? soon_ : late_;
  }
  // The engine's timer was set to look `in` ticks after `now`. One thread at a time.
  void set(uint64_t now, uint64_t in) {
    if (in <= soon_) pace_.store(LookPace::kSoon, std::memory_order_relaxed);
    at_.store(now + in, std::memory_order_seq_cst);
  }

 private:
  const uint64_t soon_, late_;
  std::atomic<uint64_t> at_{0};
  std::atomic<LookPace> pace_{LookPace::kLate};
  std::atomic<bool> lately_{false};  // something was deferred since the last look
};

enum class LeaseEnd : uint8_t {
  kNot,
  kOfPolls,  // for members that need empty polls: pollers receive for them, or their socket is full
  kOfAll,
};

class LeasePolicy {
 public:
  // How the queue was used until this look.
  struct Use {
    uint64_t now = 0;
    uint64_t empty_poll_at = 0;  // when an empty poll last made progress, or the lease began
    uint64_t posted_at = 0;      // when a member last posted in a burst; 0: never
    uint32_t polls = 0;          // counter of polls, empty or not
    bool sends = false;          // a thread is sending for a member just now
    bool needs_polls = false;    // there are members that need empty polls
  };
  struct Verdict {
    LeaseEnd end = LeaseEnd::kNot;
    bool left = false;     // nobody polled, posted or sent lately
    uint64_t look_in = 0;  // ticks; not set with kOfAll
  };

  // A lease ends when it was unused for `silence` ticks. What is deferred counts as left to the
  // engine when it was unused for `lately` ticks.
  LeasePolicy(uint64_t silence, uint64_t lately) : silence_(silence), lately_(lately) {}

  void begin(uint32_t polls) { polls_seen_ = polls; }

  // A poll that finds a completion makes no progress: such polls keep a member that only defers
  // posts, but no member that needs empty polls.
  Verdict look(const Use& use) {
    const bool polled = std::exchange(polls_seen_, use.polls) != use.polls;
    const uint64_t used_at = polled ? use.now : std::max(use.empty_poll_at, use.posted_at);
    const uint64_t unused = since(use.now, used_at);
    const uint64_t unpolled = since(use.now, use.empty_poll_at);
    Verdict verdict;
    verdict.left = unused >= lately_ && !use.sends;
    if (unused >= silence_) {
      verdict.end = LeaseEnd::kOfAll;
    } else if (use.needs_polls && unpolled >= silence_) {
      verdict.end = LeaseEnd::kOfPolls;
      verdict.look_in = silence_ - unused;
    } else {
      verdict.look_in = silence_ - (use.needs_polls ? unpolled : unused);
    }
    return verdict;
  }

 private:
  // Another processor's ticks may be ahead.
  static uint64_t since(uint64_t now, uint64_t then) { return now > then ? now - then : 0; }

  const uint64_t silence_, lately_;
  uint32_t polls_seen_ = 0;
};

}  // namespace uiw::progress
