// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The armed timers of an engine, earliest first. A pairing heap whose links live in the timers, so
// that arming never allocates and cannot fail; arming is O(1), disarming and expiring O(log n)
// amortised.
#pragma once

#include "core/clock.h"
#include "engine/engine.h"

namespace uiw::engine {

// Thread: engine.
class TimerHeap {
 public:
  // (Re-)arms `timer` for `deadline`, on the clock that expire() is given.
  void arm(Engine* engine, Timer& timer, core::Nanoseconds deadline);
  void disarm(Timer& timer);

  bool empty() const { return root_ == nullptr; }
  core::Nanoseconds next_deadline() const { return root_->deadline_; }  // not when empty

  // Runs every timer whose deadline is at or before `now`, ordered by deadline and then by when it
  // was armed. A timer that is armed meanwhile waits for the next call even if it is due, so that a
  // timer of zero length cannot keep the engine from its sockets.
  void expire(core::Nanoseconds now);

 private:
  static bool before(const Timer& a, const Timer& b);
  static Timer* meld(Timer* a, Timer* b);
  static Timer* meld_siblings(Timer* first);

  Timer* root_ = nullptr;
  uint64_t next_sequence_ = 0;
};

}  // namespace uiw::engine
