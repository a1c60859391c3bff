// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Mutexes that the handlers of pthread_atfork(3) take, so that a child does not find them locked by
// a thread that it does not have. The thread that forks may hold them itself: fork() was
// async-signal-safe until POSIX.1-2017, and handlers of SIGCHLD that start another worker rely on
// that. A handler must not wait for the thread that it interrupts.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace uiw::core {

// A mutex that knows its holder from the instant in which it is taken. It costs no system call
// while no thread waits. The state that it guards must be usable in a child even in the middle of
// each change.
class ForkMutex {
 public:
  constexpr ForkMutex() = default;
  ForkMutex(const ForkMutex&) = delete;

  void lock() {
    uintptr_t holder = kNobody;
    while (!holder_.compare_exchange_strong(holder, this_thread(), std::memory_order_acquire)) {
      holder_.wait(holder, std::memory_order_acquire);
      holder = kNobody;
    }
  }
  // Does nothing in a child in which the fork of a signal handler has released it.
  void unlock() {
    if (!is_mine()) return;
    holder_.store(kNobody, std::memory_order_release);
    holder_.notify_one();
  }
  // Whether the calling thread holds it; in a signal handler: whether the interrupted code does.
  bool is_mine() const { return holder_.load(std::memory_order_acquire) == this_thread(); }

  // The three handlers. If the forking thread holds it already, it stays held in the parent.
  void before_fork() {
    if (is_mine()) {
      ++inner_;
    } else {
      lock();
    }
  }
  void in_parent() {
    if (inner_ == 0) {
      unlock();
    } else {
      --inner_;
    }
  }
  // The child may go on in the signal handler and use the guarded state.
  void in_child() {
    inner_ = 0;
    unlock();
  }
  // From before_fork() until the other two: whether the fork has interrupted a change.
  bool is_inner() const { return inner_ != 0; }

 private:
  static constexpr uintptr_t kNobody = 0;
  static uintptr_t this_thread() { return static_cast<uintptr_t>(pthread_self()); }

  std::atomic<uintptr_t> holder_{kNobody};
  unsigned inner_ = 0;  // forks by signal handlers; used by the holder
};

// A mutex whose holder blocks signals: for all other state, where two more system calls do not
// matter.
class QuietMutex {
 public:
  constexpr QuietMutex() = default;
  QuietMutex(const QuietMutex&) = delete;

  void lock() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    mutex_.lock();
    before_ = before;
  }
  void unlock() {
    const sigset_t before = before_;
    mutex_.unlock();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  std::mutex mutex_;
  sigset_t before_{};  // under mutex_
};

}  // namespace uiw::core
