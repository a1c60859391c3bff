// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Passes tasks from any thread to the engine thread. Lock-free; many producers, one consumer.
//
// The engine sleeps in the kernel, so a producer must know whether to wake it. Both sides write
// one word and then read the other's, all seq_cst, so at least one of them sees the other:
//   producer: push the task, then read asleep_    consumer: set asleep_, then read the list
#pragma once

#include <atomic>

#include "core/flag.h"
#include "engine/engine.h"

namespace uiw::engine {

class Mailbox {
 public:
  // True when the caller must wake the consumer; that is one producer per sleep. Thread: any.
  bool push(Task& task) {
    Task* head = head_.load(std::memory_order_relaxed);
    do {
      task.next_ = head;
    } while (!head_.compare_exchange_weak(head, &task, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
    return core::take_down(asleep_);
  }

  // Takes all tasks, oldest first; next() walks the list. A task may be posted again or freed as
  // soon as it runs, so call next() before. Thread: consumer.
  Task* take_all() {
    if (!head_.load(std::memory_order_relaxed)) return nullptr;
    Task* newest = head_.exchange(nullptr, std::memory_order_acquire);
    Task* oldest = nullptr;
    while (newest) {
      Task* next = newest->next_;
      newest->next_ = oldest;
      oldest = newest;
      newest = next;
    }
    return oldest;
  }
  static Task* next(const Task& task) { return task.next_; }

  // True when the consumer may sleep: from here on push() has producers wake it. False when there
  // are tasks. Follow every call by awake(). Thread: consumer.
  bool try_sleep() {
    asleep_.store(true, std::memory_order_seq_cst);
    return head_.load(std::memory_order_seq_cst) == nullptr;
  }
  void awake() { asleep_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<Task*> head_{nullptr};
  alignas(64) std::atomic<bool> asleep_{false};
};

}  // namespace uiw::engine
