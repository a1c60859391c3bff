// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Posted receives of one QP, or of a shared receive queue.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/spinlock.h"
#include "counters/slot.h"

namespace uiw::queue {

inline constexpr uint32_t kMaxSge = 16;

struct Receive {
  uint64_t wr_id = 0;
  uint32_t sge_count = 0;
  uint64_t length = 0;  // sum of the SGEs
  uint64_t frees = 0;   // see Completion
  ibv_sge sges[kMaxSge];
};

// Callback for a posted receive. Called with a lock of the queue held, so it must only set a flag.
struct ReceiveWaiter {
  virtual void on_receive_posted() = 0;

  // Used by the queue, under that lock.
  ReceiveWaiter* next = nullptr;
  bool waiting = false;

 protected:
  ~ReceiveWaiter() = default;
};

class ReceiveQueue {
 public:
  // Who takes receives: one thread at a time (the callers ensure that), or several receivers.
  enum class Takers { kOne, kMany };

  // Holds exactly `depth` receives of up to `max_sge` SGEs. Null when out of memory.
  static std::unique_ptr<ReceiveQueue> create(uint32_t depth, uint32_t max_sge,
                                              Takers takers = Takers::kOne);

  // The counter of posted receives; must outlive the queue. Call it before the first post().
  void count_in(counters::Count& posts) { posts_ = &posts; }

  uint32_t depth() const;
  uint32_t max_sge() const { return max_sge_; }

  // Posts a list, up to the first bad entry, to which it sets `wr` (null: all were posted). 0,
  // ENOMEM when full, EINVAL when num_sge is out of range. A receive that was taken keeps its place
  // until its completion was polled (completion_source.h). Thread: any.
  int post(ibv_recv_wr*& wr);
  std::atomic<uint64_t>& freed() { return freed_; }
  // How many more receives can be posted. Thread: any.
  uint32_t room() const;

  // Returns when no thread is inside post(). Receives posted before can be taken by then, and a
  // thread that posts afterwards sees what the caller did before. Thread: any.
  void await_posts();

  // Takes the oldest receive. False, and nothing is taken, when the queue is empty, or when the
  // oldest has fewer than `least` bytes; then `out` describes it. `below_limit` is set when this
  // take made the count fall below an armed limit (which disarms it). Thread: any; with
  // Takers::kOne one at a time.
  bool take(Receive& out, bool& below_limit, uint64_t least = 0);

  // Puts the last taken receive back as the oldest one. False, and nothing happens, with
  // Takers::kMany: another thread may have taken the next one. Thread: as take().
  bool give_back();

  // A receive that was taken will never complete: its queue pair is gone. Thread: any.
  void give_up() { freed_.fetch_add(1, std::memory_order_release); }

  // Takers::kOne: drops all waiting receives and frees all places: receives that were taken will
  // not complete. No other thread may take meanwhile. Thread: any.
  void clear();

  bool empty() const { return count() == 0; }
  // Exact only while no thread posts or takes.
  uint32_t count() const {
    const uint32_t taken = taken_.load(std::memory_order_acquire);
    return posted_.load(std::memory_order_acquire) - taken;
  }

  // Calls the waiter at every post() from now on, until stop_waiting() has returned. Idempotent.
  void wait(ReceiveWaiter& waiter);
  void stop_waiting(ReceiveWaiter& waiter);

  // SRQ (Takers::kMany): one event when fewer than `limit` are left; 0 disarms. EINVAL when limit >
  // depth.
  int arm_limit(uint32_t limit);
  uint32_t limit() const;

  // SRQ: changes the depth; waiting receives stay, in order. EINVAL when more wait than would fit
  // or the armed limit is greater, ENOMEM. Thread: any.
  int resize(uint32_t depth);

 private:
  ReceiveQueue(uint32_t max_sge, Takers takers) : takers_(takers), max_sge_(max_sge) {}
  struct Slot {
    uint64_t wr_id;
    uint32_t sge_count;
  };
  bool take_oldest(Receive& out, bool& below_limit, uint64_t least);
  uint32_t room_behind(uint32_t posted) const;

  const Takers takers_;
  const uint32_t max_sge_;
  // resize() takes both locks. Slot i has its SGEs at sges_[i * max_sge_].
  uint32_t depth_ = 0;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<ibv_sge[]> sges_;

  mutable core::Spinlock post_lock_;                               // order: before take_lock_
  std::atomic<uint32_t> posted_{0};                                // how many, modulo 2^32
  uint32_t newest_ = 0;                                            // slot of the next post
  counters::Count* posts_ = &counters::g_nowhere.posted_receives;  // under post_lock_
  std::atomic<uint64_t> freed_{0};  // how many of those posted, modulo 2^32; by polls and give_up()
  ReceiveWaiter* waiters_ = nullptr;

  alignas(64) mutable core::Spinlock take_lock_;  // Takers::kMany
  std::atomic<uint32_t> taken_{0};
  uint32_t oldest_ = 0;  // slot of the next take
  uint32_t limit_ = 0;   // 0: not armed
};

}  // namespace uiw::queue
