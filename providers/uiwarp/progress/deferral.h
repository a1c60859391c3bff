// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Decides which posts are deferred, to be sent together with later ones: a system call for each
// would be most of the cost of a small request. Pure, except for state that several threads read.
// Times are ticks (core/clock.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/flag.h"
#include "core/tuning.h"

namespace uiw::progress {

// Detects bursts in the posts of one thread. Posts to all queue pairs count together, as programs
// with several queue pairs post to them in turn.
class Burst {
 public:
  // The pause allowed after kLongBurst posts, in gaps.
  static constexpr uint64_t kGapsOfPause = core::tuning::kBurstPause / core::tuning::kBurstGap;

  // A post begins. Posts of a burst are less than `gap` ticks apart. True: this post belongs to a
  // burst.
  bool posted(uint64_t now, uint64_t gap) {
    const uint64_t since = now - ended_;
    if (since < gap)
      ++in_a_row_;
    else if (in_a_row_ >= core::tuning::kLongBurst && since < gap * kGapsOfPause)
      in_a_row_ = core::tuning::kBurst;
    else
      in_a_row_ = 0;
    ended_ = now;
    return in_a_row_ >= core::tuning::kBurst;
  }
  // The post returned at `now`.
  void ended(uint64_t now) { ended_ = now; }

 private:
  uint64_t ended_ = 0;
  uint32_t in_a_row_ = 0;
};

// When no poll came in time and the engine had to send what was deferred, the next posts are not
// deferred. Their number doubles each time that this happens, and halves each time that a thread
// came for what was deferred or was busy posting. So a program that never polls waits for
// kMostDeferred only once in kMostBackoff posts, and a program that was merely delayed soon defers
// again. Thread: any; a count that is lost in a race does not matter.
class Backoff {
 public:
  // True: do not defer this one.
  bool passes() {
    const uint32_t left = left_.load(std::memory_order_relaxed);
    if (left > 0) left_.store(left - 1, std::memory_order_relaxed);
    return left > 0;
  }
  // What was deferred has been sent. `was_left`: by the engine, because no thread polled or posted.
  void judge(bool was_left) {
    const uint32_t last = last_.load(std::memory_order_relaxed);
    if (!was_left) {
      if (last > 0) last_.store(last / 2, std::memory_order_relaxed);
      return;
    }
    const uint32_t next =
        std::clamp(2 * last, core::tuning::kFirstBackoff, core::tuning::kMostBackoff);
    last_.store(next, std::memory_order_relaxed);
    left_.store(next, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> left_{0}, last_{0};
};

// Whether something waits for the next poll, and since when.
class Deferral {
 public:
  Backoff backoff;

  void begin(uint64_t now) {
    if (!waits_.load(std::memory_order_relaxed)) since_.store(now, std::memory_order_relaxed);
    waits_.store(true, std::memory_order_seq_cst);
  }
  // True: something waited, and this caller, no other, has to send it.
  bool take() { return core::take_down(waits_); }
  // UINT64_MAX: nothing waits.
  uint64_t waits_since() const {
    if (!waits_.load(std::memory_order_seq_cst)) return UINT64_MAX;
    return since_.load(std::memory_order_relaxed);
  }
  // Something has waited for at least `ticks`.
  bool has_waited(uint64_t now, uint64_t ticks) const {
    const uint64_t since = waits_since();
    return now > since && now - since >= ticks;
  }

 private:
  std::atomic<bool> waits_{false};
  std::atomic<uint64_t> since_{0};
};

// The deferred posts of one queue pair. Several threads may post and poll.
class DeferredPosts : public Deferral {
 public:
  // True: these requests are deferred, with those before them. False: there are enough now; send
  // all.
  bool add(uint32_t requests, uint64_t bytes, uint64_t now) {
    const bool first = waits_since() == UINT64_MAX;
    const uint64_t all_requests =
        uint64_t{requests} + (first ? 0 : requests_.load(std::memory_order_relaxed));
    const uint64_t all_bytes = bytes + (first ? 0 : bytes_.load(std::memory_order_relaxed));
    if (all_requests >= core::tuning::kEnoughRequests || all_bytes >= core::tuning::kEnoughBytes)
      return false;
    requests_.store(static_cast<uint32_t>(all_requests), std::memory_order_relaxed);
    bytes_.store(static_cast<uint32_t>(all_bytes), std::memory_order_relaxed);
    begin(now);
    return true;
  }

 private:
  std::atomic<uint32_t> requests_{0}, bytes_{0};  // roughly, as several may post
};

}  // namespace uiw::progress
