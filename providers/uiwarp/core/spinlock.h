// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A lock for sections of a few dozen instructions, never held across a system call.
// Spins briefly, then yields: on machines with few CPUs the holder may be descheduled.
#pragma once

#include <sched.h>

#include <atomic>

#include "core/cpu_relax.h"

namespace uiw::core {

class Spinlock {
 public:
  Spinlock() = default;
  Spinlock(const Spinlock&) = delete;
  Spinlock& operator=(const Spinlock&) = delete;

  void lock() {
    if (locked_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  bool try_lock() { return !locked_.exchange(true, std::memory_order_acquire); }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  // Not inlined, so that a caller that finds the lock free need not save registers.
  [[gnu::cold, gnu::noinline]] void wait() {
    int spins = 0;
    do {
      while (locked_.load(std::memory_order_relaxed)) {
        if (++spins < 100) {
          cpu_relax();
        } else {
          sched_yield();
        }
      }
    } while (locked_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> locked_{false};
};

}  // namespace uiw::core
