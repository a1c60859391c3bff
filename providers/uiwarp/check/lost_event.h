// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whether a thread waits for an event of a completion queue that will not come. Pure but for Usage.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "check/blocked_thread.h"

namespace uiw::check {

// By which threads a queue is polled and armed, and its events are taken, and how often. Thread:
// any.
class Usage {
 public:
  void polled(int tid) { used(tid, true); }
  void armed(int tid) { used(tid, false); }
  // Whoever has taken an event will poll, though it may do other work before.
  void event_taken(int tid) {
    const int before = taker_.exchange(tid, std::memory_order_relaxed);
    if (before != 0 && before != tid) is_shared_.store(true, std::memory_order_relaxed);
    used(tid, false);
  }
  // Changes with each use.
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  // The one that polls it, or, before anybody has, took an event of it; 0: none has yet.
  int poller() const {
    const int poller = poller_.load(std::memory_order_relaxed);
    return poller ? poller : taker_.load(std::memory_order_relaxed);
  }
  // Since it was first polled another thread has used it, too, or several have taken its events.
  bool is_shared() const { return is_shared_.load(std::memory_order_relaxed); }

 private:
  void used(int tid, bool poll) {
    // A use that is lost to another thread's at the same time does not matter: both were uses.
    count_.store(count() + 1, std::memory_order_relaxed);
    int before = 0;
    const bool is_first =
        poll ? poller_.compare_exchange_strong(before, tid) : (before = poller_.load()) == 0;
    if (!is_first && before != tid) is_shared_.store(true, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> count_{0};
  std::atomic<int> poller_{0};
  std::atomic<int> taker_{0};  // of the last event
  std::atomic<bool> is_shared_{false};
};

// How a queue was armed last, and what it held then.
struct Arming {
  enum class How : uint8_t {
    kNever,
    kSolicitedOnly,  // what waits need not be what an event was asked for
    kAny,
  };
  How how = How::kNever;
  uint32_t held = 0;  // completions; 0 also when a poll has found it empty since
};

// Of a queue whose only thread has been blocked for a second or longer, while nobody used it.
struct Blocked {
  Wait wait = Wait::kOther;  // for its channel
  bool is_shared = false;    // other threads have used it before
  uint32_t others = 0;       // queues of that channel that have been armed, too
  Arming arming;
  uint32_t waiting = 0;   // completions in it
  uint32_t messages = 0;  // receives of them that succeeded
};

struct LostEvent {
  std::string what;
  bool is_hint;  // the program may be woken by something else, or not care about these completions
};
std::optional<LostEvent> judge(const Blocked& blocked);

}  // namespace uiw::check
