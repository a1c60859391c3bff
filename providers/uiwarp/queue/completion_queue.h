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

// Called when an armed CQ gets a completion, and when it overflows: from inside push(), the
// first one from arm() too, the last one from poll(), with no lock of the CQ held; must not block.
// Thread: the one that completes or arms.
class CompletionEvents {
 public:
  virtual void on_completion_event() = 0;
  virtual void on_overflow() = 0;  // once; later completions are lost, IBV_EVENT_CQ_ERR
  // Empty polls follow each other: called about every 10 us. Thread: the one that polls.
  virtual void on_spinning() {}

 protected:
  ~CompletionEvents() = default;
};

// What a thread that finds a queue empty can do itself to fill it.
class Progress {
 public:
  virtual ~Progress() = default;
  // What that completed is in the queue. Never blocks. Thread: any.
  virtual void progress() = 0;
  // The queue was armed: the thread that polled it is about to sleep. Thread: any.
  virtual void on_arm() = 0;
  // Whose work it does: its own, or another queue's.
  virtual Progress& actual() { return *this; }
};

class CompletionQueue : public std::enable_shared_from_this<CompletionQueue> {
 public:
  // Holds at least `entries` completions (rounded up to a power of two). Null when out of memory.
  static std::unique_ptr<CompletionQueue> create(uint32_t entries, CompletionEvents* events);

  // Where capacity and high-water mark are published; outlives all that completes here. Before the
  // first push().
  void count_in(counters::Slot& slot);

  // Changed by resize(): not to be read while that runs.
  uint32_t capacity() const { return capacity_; }

  // Adds one. `solicited`: it may wake a waiter armed for solicited completions only (SE received,
  // or an error: RFC 5040 5.3, conformance 3.3). Thread: any.
  void push(const Completion& completion, bool solicited) { push_all({&completion, 1}, solicited); }
  // Several; `solicited`: one of them may wake such a waiter.
  void push_all(std::span<const Completion> completions, bool solicited);

  // Takes up to `count`, whose places in their work queues are free then; returns how many. Never
  // blocks; an empty poll makes progress where it may, and one of many yields the CPU.
  // A fork's child finds nothing. Thread: any.
  int poll(int count, ibv_wc* out);

  // Arms one event for the next completion, solicited if so wanted. One that waits already counts
  // if it came since the last event: then the event is raised at once. Thread: any.
  void arm(bool solicited_only);

  // Makes the event of an armed CQ happen although nothing was added, see
  // doc/decisions/003-write-wakes-idle-sender.md; unless `whose`, if anybody's, is hushed. Thread:
  // any.
  void wake(const CompletionSource* whose = nullptr);

  // From now on its completions raise no event: they will be dropped, as the queue pair is about to
  // go. Thread: any.
  void hush(CompletionSource& source);

  // Drops all completions of this source that were not polled yet (ibv_destroy_qp, ibv_modify_qp to
  // RESET); of a shared queue their places are free then. Takes the same time however many wait.
  // Thread: any; the source can no longer produce.
  void purge(std::unique_ptr<CompletionSource> source);

  // New capacity; 0 or EINVAL when more completions are waiting than would fit, ENOMEM.
  int resize(uint32_t entries);

  // What polls would give now: how many, and how many of them tell of a message that has come.
  // Thread: any.
  struct Waiting {
    uint32_t all = 0, messages = 0;
  };
  Waiting waiting();

  // How often a poll was empty, it was polled at all (changes with each poll) and armed: what its
  // users seem to be doing. Thread: any.
  uint32_t empty_polls() const { return empty_polls_.load(std::memory_order_relaxed); }
  uint32_t polls() const { return empty_polls() + tail_.load(std::memory_order_relaxed); }
  uint32_t arms() const { return arms_.load(std::memory_order_relaxed); }

  // The engine of the queue pairs that complete here; this queue does not call it. Null at first,
  // then the one that was set first. Thread: any.
  engine::Engine* affinity() const { return affinity_.load(std::memory_order_acquire); }
  // True when it is `engine` now, also when it was already.
  bool set_affinity(engine::Engine& engine) {
    engine::Engine* set = nullptr;
    return affinity_.compare_exchange_strong(set, &engine, std::memory_order_acq_rel) ||
           set == &engine;
  }

  // Null at first. Set once; lives as long as the queue. Thread: set_progress() its engine, else
  // any.
  Progress* progress() const { return progress_.load(std::memory_order_acquire); }
  void set_progress(std::unique_ptr<Progress> progress) {
    progress_.store(progress.release(), std::memory_order_release);
  }

  // As if it had lost a completion: told once. Thread: any.
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
  const unsigned generation_ = core::generation();  // of the process that may poll
  std::unique_ptr<Completion[]> ring_;
  uint32_t capacity_ = 0;                             // power of two; changed under both locks
  alignas(64) std::atomic<uint32_t> head_{0};         // next to write; producers
  alignas(64) std::atomic<uint32_t> empty_polls_{0};  // written by spinning pollers, so alone
  alignas(64) std::atomic<uint32_t> tail_{0};         // next to read; consumers
  std::atomic<uint32_t> purged_{0};  // of those between tail_ and head_; written under consume_
  // Purged ones with completions that wait still; under consume_.
  core::List<CompletionSource, &CompletionSource::among_gone_> gone_;
  Armed armed_ = kNotArmed;  // under produce_
  uint32_t high_water_ = 0;  // under produce_: most completions that waited at a time
  counters::Slot* counters_ = &counters::g_nowhere;
  bool untold_ = false;  // under produce_: a completion came since the last event
  // Under produce_: since the last event a solicited one came, as so many ago; 0: none.
  uint64_t untold_solicited_ = 0;
  std::atomic<bool> overflowed_{false};
  std::atomic<uint32_t> arms_{0};
  std::atomic<Progress*> progress_{nullptr};
  std::atomic<engine::Engine*> affinity_{nullptr};
  CompletionEvents* events_ = nullptr;
};

}  // namespace uiw::queue
