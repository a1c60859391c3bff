// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What takes locks of other libraries, which are never freed in a child that was forked off
// meanwhile: libunwind's, and the loader's. From before a fork until behind it nobody is within.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace uiw::check {

// Thread: any. Who is within must not fork.
class ForkGate {
 public:
  void enter() {
    while (within_.fetch_add(1), is_closed_) {
      within_.fetch_sub(1);
      const std::lock_guard until_it_opens(closing_);
    }
  }
  void leave() { within_.fetch_sub(1); }

  // Of the thread that forks. It waits for who is within.
  void close() {
    closing_.lock();
    is_closed_ = true;
    while (within_ != 0) sched_yield();
  }
  void open() {
    is_closed_ = false;
    closing_.unlock();
  }
  // In the child: who was about to find it closed is not there.
  void open_in_child() {
    within_ = 0;
    open();
  }

 private:
  std::mutex closing_;
  std::atomic<bool> is_closed_{false};
  std::atomic<uint32_t> within_{0};
};

// Of this process, and of its forks.
inline constinit ForkGate fork_gate;

}  // namespace uiw::check
