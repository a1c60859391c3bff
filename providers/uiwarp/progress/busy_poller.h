// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The completion queue that a thread of the program busy-polls, should there be one. It can receive
// for queue pairs that have nothing to do with that queue, when nobody polls theirs: the thread
// finds a Write or answers a Read while it waits for something else (doc/decisions/006).
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
  // `queue` was busy-polled. Of several the last one counts. Thread: any.
  void offer(const std::shared_ptr<queue::CompletionQueue>& queue) {
    if (latest_.load(std::memory_order_relaxed) == queue.get()) return;
    // Not worth waiting for; after fork() it may be locked for good.
    const std::unique_lock lock(lock_, std::try_to_lock);
    if (!lock) return;
    queue_ = queue;
    latest_.store(queue.get(), std::memory_order_relaxed);
  }

  // Null: nobody has, or the queue is gone. Whether somebody still polls it is not known here.
  // Thread: any.
  std::shared_ptr<queue::CompletionQueue> get() {
    if (!latest_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(lock_);
    std::shared_ptr<queue::CompletionQueue> queue = queue_.lock();
    // The next one may have the same address.
    if (!queue) latest_.store(nullptr, std::memory_order_relaxed);
    return queue;
  }

  // Whether there is a processor for the engine, too. `now`: engine time. Thread: any engine.
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
  std::atomic<core::Nanoseconds> asked_at_{0};                  // of processors
  std::atomic<bool> short_{false};
};

}  // namespace uiw::progress
