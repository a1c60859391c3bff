// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Posted receives of one QP, or of a shared receive queue.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "core/spinlock.h"

namespace uiw::queue {

inline constexpr uint32_t kMaxSge = 16;

struct Receive {
  uint64_t wr_id = 0;
  uint32_t sge_count = 0;
  uint64_t length = 0;  // sum of the SGEs
  ibv_sge sges[kMaxSge];
};

// Told that a receive was posted. Called with the queue's lock held: must only leave a note.
struct ReceiveWaiter {
  virtual void on_receive_posted() = 0;

  // The queue's, under its lock.
  ReceiveWaiter* next = nullptr;
  bool waiting = false;

 protected:
  ~ReceiveWaiter() = default;
};

class ReceiveQueue {
 public:
  // Holds exactly `depth` receives of up to `max_sge` SGEs. Null when out of memory.
  static std::unique_ptr<ReceiveQueue> create(uint32_t depth, uint32_t max_sge);

  uint32_t depth() const;
  uint32_t max_sge() const { return max_sge_; }

  // 0, ENOMEM when full, EINVAL when num_sge is out of range. Thread: any.
  int post(const ibv_recv_wr& wr);

  // Takes the oldest. False when empty. Thread: any.
  // `below_limit` is set when this take made the count fall below an armed limit (which disarms
  // it).
  bool take(Receive& out, bool& below_limit);

  bool empty() const;
  uint32_t count() const;

  // The waiter is told of every post() from now on, until stop_waiting() has returned. Idempotent.
  void wait(ReceiveWaiter& waiter);
  void stop_waiting(ReceiveWaiter& waiter);

  // SRQ: one event when fewer than `limit` are left; 0 disarms. EINVAL when limit > depth.
  int arm_limit(uint32_t limit);
  uint32_t limit() const;

  // New depth; what waits stays, in order. EINVAL when more wait than would fit or the armed limit
  // is greater, ENOMEM. Thread: any.
  int resize(uint32_t depth);

 private:
  ReceiveQueue() = default;
  struct Slot {
    uint64_t wr_id;
    uint32_t sge_count;
  };
  mutable core::Spinlock lock_;
  uint32_t max_sge_ = 0;
  // All below under lock_. Slot i has its SGEs at sges_[i * max_sge_].
  uint32_t depth_ = 0;
  uint32_t limit_ = 0;   // 0: not armed
  uint32_t count_ = 0;   // receives waiting
  uint32_t oldest_ = 0;  // slot of the next to take
  ReceiveWaiter* waiters_ = nullptr;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<ibv_sge[]> sges_;
};

}  // namespace uiw::queue
