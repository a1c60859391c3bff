// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What only one thread may be in at a time. Pure but for locks of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "check/stack.h"

namespace uiw::check {

using Thread = uint64_t;  // 0: none; of no two threads of a process, not even one after the other

// Of the caller.
Thread this_thread();

// Calls on an object whose program has promised one thread at a time.
class OneAtATime {
 public:
  // `thread` comes in, unless another one is within, or itself: then where that came in.
  struct Within {
    Thread thread;
    Stack where;
  };
  std::optional<Within> enter(Thread thread, const Stack& where);
  // What enter() let in goes; nothing happens when `thread` is not within.
  void leave(Thread thread);

 private:
  std::mutex mutex_;
  Within within_{0, {}};  // under mutex_
};

// ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort(), of one queue pair.
class Section {
 public:
  enum class Step : uint8_t {
    kFine,
    kOutside,  // there is no section
    kMixed,    // another thread made calls in the section of the one that goes on with it
  };
  struct Fault {
    Step step = Step::kFine;
    Stack begun;  // but of kOutside
    Stack other;  // of kMixed: the other thread's call
  };

  void begin(Thread thread, const Stack& where);
  // A call that belongs into a section.
  Fault call(Thread thread, const Stack& where);
  // Whose it was; 0: there was none.
  Thread end();

  // Thread: any; certain only of the thread itself.
  bool is_of(Thread thread) const { return owner_.load(std::memory_order_relaxed) == thread; }
  // Nothing is to be said of its next call.
  bool is_plain(Thread thread) const {
    return is_of(thread) && !has_other_.load(std::memory_order_relaxed);
  }
  // Where it began, if there is one.
  std::optional<Stack> open() const;

 private:
  std::atomic<Thread> owner_{0};  // changed under mutex_
  mutable std::mutex mutex_;
  std::atomic<bool> has_other_{false};  // likewise
  Stack begun_, other_;                 // under mutex_
};

}  // namespace uiw::check
