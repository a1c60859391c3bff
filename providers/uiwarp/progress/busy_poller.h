// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Remembers the completion queue that a thread of the program busy-polls. When nobody polls the
// queues of a queue pair, that thread can receive for it although its own completion queue has
// nothing to do with it. So a Write is placed, or a Read answered, while the thread waits for
// something else (doc/decisions/006).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "core/clock.h"
#include "core/processors.h"
#include "core/spinlock.h"
#include "queue/completion_queue.h"

namespace uiw::progress {

class BusyPoller {
 public:
  // `queue` was busy-polled. With several such queues the last one counts. Thread: any.
  void offer(const std::shared_ptr<queue::CompletionQueue>& queue) {
    if (latest_.load(std::memory_order_relaxed) == queue.get()) return;
    // The news is not worth waiting for the lock; after fork() it may stay locked forever.
    const std::unique_lock lock(lock_, std::try_to_lock);
    if (!lock) return;
    queue_ = queue;
    latest_.store(queue.get(), std::memory_order_relaxed);
  }

  // Null: no queue was busy-polled, or it was destroyed. The queue may no longer be polled; the
  // caller has to find that out. Thread: any.
  std::shared_ptr<queue::CompletionQueue> get() {
    if (!latest_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(lock_);
    std::shared_ptr<queue::CompletionQueue> queue = queue_.lock();
    // A new queue may get the same address.
    if (!queue) latest_.store(nullptr, std::memory_order_relaxed);
    return queue;
  }

  // Whether more threads want to run than there are processors for them, so that the engine gets
  // none without delay. Measured at most once a millisecond. `now`: engine time. Thread: any
  // engine.
  bool processors_are_short(core::Nanoseconds now) {
    if (now - asked_at_.load(std::memory_order_relaxed) >= core::kMillisecond) {
      asked_at_.store(now, std::memory_order_relaxed);
      short_.store(core::processors_are_short(), std::memory_order_relaxed);
    }
    return short_.load(std::memory_order_relaxed);
  }

 private:
  core::Spinlock lock_;
  std::weak_ptr<queue::CompletionQueue> queue_;                 // under lock_
  std::atomic<const queue::CompletionQueue*> latest_{nullptr};  // what queue_ names
  std::atomic<core::Nanoseconds> asked_at_{0};                  // when short_ was computed
  std::atomic<bool> short_{false};
};

}  // namespace uiw::progress
