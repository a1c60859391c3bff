// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A completion queue: filled by engine and poster threads, emptied by ibv_poll_cq.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "core/generation.h"
#include "core/list.h"
#include "core/spinlock.h"
#include "counters/slot.h"
#include "queue/completion_source.h"

namespace uiw::engine {
class Engine;
}

namespace uiw::queue {

// Callbacks for a completion on an armed CQ and for an overflow. They are called from push(); the
// first one from arm() too, the last one from poll(). No lock of the CQ is held; they must not
// block. Thread: the one that completes, arms or polls.
class CompletionEvents {
 public:
  virtual void on_completion_event() = 0;
  virtual void on_overflow() = 0;  // called once; later completions are lost; IBV_EVENT_CQ_ERR
  // Called about every 10 us during consecutive empty polls. Thread: the one that polls.
  virtual void on_spinning() {}

 protected:
  ~CompletionEvents() = default;
};

// What a thread that polls an empty queue can do itself to get completions.
class Progress {
 public:
  virtual ~Progress() = default;
  // Makes progress; when it returns, resulting completions are in the queue. Never blocks. Thread:
  // any.
  virtual void progress() = 0;
  // The queue was armed: the thread that polled it is about to sleep. Thread: any.
  virtual void on_arm() = 0;
  // The object that does the work: this one, or that of another queue.
  virtual Progress& actual() { return *this; }
};

class CompletionQueue : public std::enable_shared_from_this<CompletionQueue> {
 public:
  // Holds at least `entries` completions (rounded up to a power of two). Null when out of memory.
  static std::unique_ptr<CompletionQueue> create(uint32_t entries, CompletionEvents* events);

  // Where to publish capacity and high-water mark. Must outlive every completion. Call it before
  // the first push().
  void count_in(counters::Slot& slot);

  // Must not be called while resize() runs.
  uint32_t capacity() const { return capacity_; }

  // Adds one. `solicited`: it may wake a waiter armed for solicited completions only (SE received,
  // or an error: RFC 5040 5.3, conformance 3.3). Thread: any.
  void push(const Completion& completion, bool solicited) { push_all({&completion, 1}, solicited); }
  // Several; `solicited`: one of them may wake such a waiter.
  void push_all(std::span<const Completion> completions, bool solicited);

  // Takes up to `count` completions, which frees their places in their work queues; returns how
  // many. Never blocks. An empty poll makes progress if there is a hook for it, and one of many
  // yields the CPU. In a fork's child finds nothing. Thread: any.
  int poll(int count, ibv_wc* out);

  // Arms one event for the next completion, or the next solicited one. If a completion that came
  // since the last event is still waiting, the event is raised at once. Thread: any.
  void arm(bool solicited_only);

  // Raises the event of an armed CQ without a completion, see
  // doc/decisions/003-write-wakes-idle-sender.md. Does nothing if `whose` is given and hushed.
  // Thread: any.
  void wake(const CompletionSource* whose = nullptr);

  // From now on completions of this source raise no event: the queue pair is about to be destroyed
  // or reset, which drops them. Thread: any.
  void hush(CompletionSource& source);

  // Drops all completions of this source that were not polled yet (ibv_destroy_qp, ibv_modify_qp to
  // RESET); for a shared queue this frees their places. Takes constant time. The source must not
  // produce any more. `wr_ids`: null, or room for those of the completions that are dropped.
  // Returns how many were dropped. Thread: any.
  uint32_t purge(std::unique_ptr<CompletionSource> source, uint64_t* wr_ids = nullptr);
  // How many completions of it were not polled yet. Thread: any.
  uint32_t waiting_of(const CompletionSource& source);

  // Changes the capacity. 0, EINVAL when more completions wait than would fit, or ENOMEM.
  int resize(uint32_t entries);

  // How many completions polls would return now, and how many of them are for received messages.
  // Thread: any.
  struct Waiting {
    uint32_t all = 0, messages = 0;
  };
  Waiting waiting();

  // Counters of empty polls, of polls (changes with each poll) and of arming. They show how
  // programs use the queue. Thread: any.
  uint32_t empty_polls() const { return empty_polls_.load(std::memory_order_relaxed); }
  uint32_t polls() const { return empty_polls() + tail_.load(std::memory_order_relaxed); }
  uint32_t arms() const { return arms_.load(std::memory_order_relaxed); }

  // The engine of the queue pairs that complete here; the queue itself does not use it. Null at
  // first, then fixed by the first set_affinity(). Thread: any.
  engine::Engine* affinity() const { return affinity_.load(std::memory_order_acquire); }
  // True when the affinity is `engine` afterwards.
  bool set_affinity(engine::Engine& engine) {
    engine::Engine* set = nullptr;
    return affinity_.compare_exchange_strong(set, &engine, std::memory_order_acq_rel) ||
           set == &engine;
  }

  // Null at first. Set once; lives as long as the queue. Thread: any; set_progress(): the queue's
  // engine.
  Progress* progress() const { return progress_.load(std::memory_order_acquire); }
  void set_progress(std::unique_ptr<Progress> progress) {
    progress_.store(progress.release(), std::memory_order_release);
  }

  // Acts as if a completion had been lost: reports an overflow, once. Thread: any.
  void overrun();
  bool overflowed() const { return overflowed_.load(std::memory_order_acquire); }

  ~CompletionQueue();

 private:
  CompletionQueue() = default;
  bool empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed);
  }
  enum Armed : uint32_t { kNotArmed, kSolicited, kAny };
  void pass(CompletionSource& source, uint32_t count, uint64_t frees);
  uint32_t move_waiting(Completion* to, uint32_t mask);
  void set_waiting(uint32_t count);
  void drop_purged();
  bool has_untold(bool solicited_only) const;

  core::Spinlock produce_;  // order: consume_ before produce_
  core::Spinlock consume_;
  const unsigned generation_ = core::generation();  // of the process that made it, which alone may
                                                    // poll
  std::unique_ptr<Completion[]> ring_;
  uint32_t capacity_ = 0;                             // power of two; changed under both locks
  alignas(64) std::atomic<uint32_t> head_{0};         // next to write; producers
  alignas(64) std::atomic<uint32_t> empty_polls_{0};  // has a cache line of its own, as spinning
                                                      // pollers write it
  alignas(64) std::atomic<uint32_t> tail_{0};         // next to read; consumers
  std::atomic<uint32_t> purged_{0};  // entries between tail_ and head_ that were purged; written
                                     // under consume_
  // Purged sources that still have entries in the ring; under consume_.
  core::List<CompletionSource, &CompletionSource::among_gone_> gone_;
  Armed armed_ = kNotArmed;  // under produce_
  uint32_t high_water_ = 0;  // under produce_: the most completions that waited at one time
  counters::Slot* counters_ = &counters::g_nowhere;
  bool untold_ = false;  // under produce_: a completion came since the last event
  // Under produce_: how many completions ago the latest solicited one since the last event came,
  // counted from 1; 0: none.
  uint64_t untold_solicited_ = 0;
  std::atomic<bool> overflowed_{false};
  std::atomic<uint32_t> arms_{0};
  std::atomic<Progress*> progress_{nullptr};
  std::atomic<engine::Engine*> affinity_{nullptr};
  CompletionEvents* events_ = nullptr;
};

}  // namespace uiw::queue
