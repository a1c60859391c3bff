// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What takes locks of other libraries, which are never freed in a child that was forked off
// meanwhile: libunwind's, and the loader's. From before a fork until behind it nobody is within.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace uiw::check {

// Thread: any. Who is within forks only where a signal handler does that interrupts it.
class ForkGate {
 public:
  void enter() {
    for (;;) {
      mine_ = 1;
      within_.fetch_add(1);
      if (!is_closed_) return;
      within_.fetch_sub(1);
      mine_ = 0;
      const std::lock_guard until_it_opens(closing_);
    }
  }
  void leave() {
    within_.fetch_sub(1);
    mine_ = 0;
  }
  // The calling thread; in a signal handler, what that has interrupted.
  static bool is_within() { return mine_ != 0; }

  // Of the thread that forks, without signals until it opens. It waits for the others within.
  void close() {
    closing_.lock();
    is_closed_ = true;
    while (within_ > mine_) sched_yield();
  }
  void open() {
    is_closed_ = false;
    closing_.unlock();
  }
  // In the child: who was about to find it closed is not there.
  void open_in_child() {
    within_ = mine_;
    open();
  }

 private:
  std::mutex closing_;
  std::atomic<bool> is_closed_{false};
  std::atomic<uint32_t> within_{0};
  static constinit inline thread_local volatile uint32_t mine_ = 0;  // of those
};

// Of this process, and of its forks.
inline constinit ForkGate fork_gate;

}  // namespace uiw::check
