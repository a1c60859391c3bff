// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which posts wait to be sent with others: a system call each would be most of what a small request
// costs. Pure but for what several threads read; time comes in as ticks (core/clock.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/flag.h"
#include "core/tuning.h"

namespace uiw::progress {

// The posts of one thread, on whatever queue pairs: programs with several post to each by turns.
class Burst {
 public:
  // So many gaps are the pause that may follow a long part.
  static constexpr uint64_t kGapsOfPause = core::tuning::kBurstPause / core::tuning::kBurstGap;

  // A post begins; `gap` ticks may lie between two of a burst. True: it belongs to one.
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
  // It has taken until now.
  void ended(uint64_t now) { ended_ = now; }

 private:
  uint64_t ended_ = 0;
  uint32_t in_a_row_ = 0;
};

// After the engine had to send what everybody had left, nothing is deferred for a number of times:
// twice as many with each time more, half as many with each time that somebody came or was busy
// posting. So a program that never comes waits for kMostDeferred once in kMostBackoff posts, and
// one that was kept from coming soon defers again. Thread: any; a count that is lost to another
// thread does not matter.
class Backoff {
 public:
  // True: not now.
  bool passes() {
    const uint32_t left = left_.load(std::memory_order_relaxed);
    if (left > 0) left_.store(left - 1, std::memory_order_relaxed);
    return left > 0;
  }
  // What was deferred has been sent: because it was left, or not.
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

// Something waits for the next poll, since when.
class Deferral {
 public:
  Backoff backoff;

  void begin(uint64_t now) {
    if (!waits_.load(std::memory_order_relaxed)) since_.store(now, std::memory_order_relaxed);
    waits_.store(true, std::memory_order_seq_cst);
  }
  // True when something waited, and the caller alone is to send it.
  bool take() { return core::take_down(waits_); }
  // UINT64_MAX: nothing waits.
  uint64_t waits_since() const {
    if (!waits_.load(std::memory_order_seq_cst)) return UINT64_MAX;
    return since_.load(std::memory_order_relaxed);
  }
  // It has waited for `ticks` at least.
  bool has_waited(uint64_t now, uint64_t ticks) const {
    const uint64_t since = waits_since();
    return now > since && now - since >= ticks;
  }

 private:
  std::atomic<bool> waits_{false};
  std::atomic<uint64_t> since_{0};
};

// What of one queue pair's posts waits. Several threads may post and poll.
class DeferredPosts : public Deferral {
 public:
  // True: these wait, with those before them. False: it is enough, all are to be sent now.
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
