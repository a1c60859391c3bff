// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A ring of completions. head_ moves under produce_, tail_ under consume_; each side reads the
// other's position without its lock.
//
// No event is lost: push() publishes and looks at armed_ in one section of produce_, arm() sets
// armed_ in another. If push() came first, whoever armed finds the completion in its next poll();
// if arm() came first, push() reports the event.
#include "queue/completion_queue.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <new>

namespace uiw::queue {

namespace {
// More would overflow the rounding up; the device limit is far below.
// A spinning program lets others run now and then, the engine above all: what it spins for may need
// the same CPU. About 10 us of empty polls. doc/decisions/004-polls-yield.md has the measurements.
constexpr uint32_t kPollsPerYield = 1024;

constexpr uint32_t kMostEntries = 1u << 30;
}  // namespace

std::unique_ptr<CompletionQueue> CompletionQueue::create(uint32_t entries,
                                                         CompletionEvents* events) {
  if (entries > kMostEntries) return nullptr;
  std::unique_ptr<CompletionQueue> cq(new (std::nothrow) CompletionQueue);
  if (!cq) return nullptr;
  cq->capacity_ = std::bit_ceil(std::max(entries, 1u));
  cq->ring_.reset(new (std::nothrow) ibv_wc[cq->capacity_]);
  if (!cq->ring_) return nullptr;
  cq->events_ = events;
  return cq;
}

void CompletionQueue::push_all(std::span<const ibv_wc> completions, bool solicited) {
  bool told = false, lost = false;
  {
    const std::lock_guard lock(produce_);
    const uint32_t mask = capacity_ - 1;
    uint32_t head = head_.load(std::memory_order_relaxed);
    const uint32_t room = capacity_ - (head - tail_.load(std::memory_order_acquire));
    lost = completions.size() > room;
    if (lost) completions = completions.first(room);
    for (const ibv_wc& completion : completions) ring_[head++ & mask] = completion;
    head_.store(head, std::memory_order_release);
    if (!completions.empty() && (armed_ == kAny || (armed_ == kSolicited && solicited))) {
      armed_ = kNotArmed;
      told = true;
    }
  }
  // Outside the lock, because telling is a system call.
  if (told) events_->on_completion_event();
  if (lost && !overflowed_.exchange(true, std::memory_order_acq_rel)) events_->on_overflow();
}

int CompletionQueue::poll(int count, ibv_wc* out) {
  // The usual answer to a spinning poller takes no lock.
  if (empty()) {
    const uint32_t polls = empty_polls_.load(std::memory_order_relaxed) + 1;
    empty_polls_.store(
        polls, std::memory_order_relaxed);  // a count lost to another poller does not matter
    if (polls % kPollsPerYield == 0) {
      if (events_) events_->on_spinning();
      sched_yield();
    }
    Progress* const own = progress();
    if (!own || !own->progress() || empty()) return 0;
  }
  const std::lock_guard lock(consume_);
  uint32_t tail = tail_.load(std::memory_order_relaxed);
  const uint32_t waiting = head_.load(std::memory_order_acquire) - tail;
  const uint32_t taken = std::min(static_cast<uint32_t>(std::max(count, 0)), waiting);
  for (uint32_t i = 0; i < taken; ++i) out[i] = ring_[tail++ & (capacity_ - 1)];
  tail_.store(tail, std::memory_order_release);
  return static_cast<int>(taken);
}

void CompletionQueue::arm(bool solicited_only) {
  {
    const std::lock_guard lock(produce_);
    // A request for solicited completions does not weaken one for all that is still pending.
    armed_ = std::max(armed_, solicited_only ? kSolicited : kAny);
    arms_.store(arms_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  if (Progress* const own = progress()) own->on_arm();
}

void CompletionQueue::wake() {
  {
    const std::lock_guard lock(produce_);
    if (armed_ != kAny) return;
    armed_ = kNotArmed;
  }
  events_->on_completion_event();
}

void CompletionQueue::purge(uint32_t qp_num) {
  const std::lock_guard consume_lock(consume_);
  const std::lock_guard produce_lock(produce_);
  const uint32_t head = head_.load(std::memory_order_relaxed);
  uint32_t kept = tail_.load(std::memory_order_relaxed);
  for (uint32_t i = kept; i != head; ++i) {
    const ibv_wc& completion = ring_[i & (capacity_ - 1)];
    if (completion.qp_num != qp_num) ring_[kept++ & (capacity_ - 1)] = completion;
  }
  head_.store(kept, std::memory_order_release);
}

int CompletionQueue::resize(uint32_t entries) {
  if (entries == 0 || entries > kMostEntries) return EINVAL;
  const uint32_t capacity = std::bit_ceil(entries);
  std::unique_ptr<ibv_wc[]> ring(new (std::nothrow) ibv_wc[capacity]);
  if (!ring) return ENOMEM;
  {
    const std::lock_guard consume_lock(consume_);
    const std::lock_guard produce_lock(produce_);
    const uint32_t head = head_.load(std::memory_order_relaxed);
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (head - tail > capacity) return EINVAL;
    for (uint32_t i = tail; i != head; ++i) ring[i & (capacity - 1)] = ring_[i & (capacity_ - 1)];
    ring_.swap(ring);
    capacity_ = capacity;
  }
  return 0;  // the old ring is freed with no lock held
}

}  // namespace uiw::queue
