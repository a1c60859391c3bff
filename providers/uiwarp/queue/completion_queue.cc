// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A ring of completions. head_ moves under produce_, tail_ under consume_; each side reads the
// other's position without its lock.
//
// No event is lost: push() publishes and reads armed_ in one critical section of produce_, arm()
// sets armed_ in another. If push() came first, arm() raises the event; if arm() came first, push()
// does.
#include "queue/completion_queue.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>
#include <new>

#include "core/tuning.h"

namespace uiw::queue {

namespace {
// More would overflow the rounding up; the device limit is far below.
constexpr uint32_t kMostEntries = 1u << 30;
}  // namespace

std::unique_ptr<CompletionQueue> CompletionQueue::create(uint32_t entries,
                                                         CompletionEvents* events) {
  if (entries > kMostEntries) return nullptr;
  std::unique_ptr<CompletionQueue> cq(new (std::nothrow) CompletionQueue);
  if (!cq) return nullptr;
  cq->capacity_ = std::bit_ceil(std::max(entries, 1u));
  cq->ring_.reset(new (std::nothrow) Completion[cq->capacity_]);
  if (!cq->ring_) return nullptr;
  cq->events_ = events;
  return cq;
}

CompletionQueue::~CompletionQueue() {
  while (CompletionSource* source = gone_.first()) {
    gone_.remove(*source);
    delete source;
  }
  delete progress();
}

void CompletionQueue::count_in(counters::Slot& slot) {
  counters_ = &slot;
  slot.capacity.set(capacity_);
}

void CompletionQueue::push_all(std::span<const Completion> completions, bool solicited) {
  bool told = false, lost = false;
  {
    std::unique_lock lock(produce_);
    const auto room = [&] {
      return capacity_ -
             (head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire));
    };
    uint32_t free = room();
    if (completions.size() > free) {
      lock.unlock();
      drop_purged();
      lock.lock();
      free = room();
    }
    if (completions.size() > free) {  // a concurrent poll makes room only for later ones
      lost = true;
      for (const Completion& completion : completions.subspan(free)) completion.source->lose();
      completions = completions.first(free);
    }
    const uint32_t mask = capacity_ - 1;
    uint32_t head = head_.load(std::memory_order_relaxed);
    bool tells = false;
    for (const Completion& completion : completions) {
      ++completion.source->pushed_;
      tells |= !completion.source->hushed_;
      ring_[head++ & mask] = completion;
    }
    head_.store(head, std::memory_order_release);
    const uint32_t waiting = capacity_ - free + static_cast<uint32_t>(completions.size());
    if (waiting > high_water_) {
      high_water_ = waiting;
      counters_->high_water.set(waiting);
    }
    if (tells) {
      told = armed_ == kAny || (armed_ == kSolicited && solicited);
      if (told) armed_ = kNotArmed;
      untold_ = !told;
      if (told)
        untold_solicited_ = 0;
      else if (solicited)
        untold_solicited_ = 1;
      else if (untold_solicited_ > 0)
        untold_solicited_ += completions.size();
    }
  }
  // Outside the lock, because the callback makes a system call.
  if (told) events_->on_completion_event();
  if (lost) overrun();
}

void CompletionQueue::overrun() {
  if (!overflowed_.exchange(true, std::memory_order_acq_rel)) events_->on_overflow();
}

int CompletionQueue::poll(int count, ibv_wc* out) {
  // The usual answer to a spinning poller takes no lock.
  if (empty()) {
    const uint32_t polls = empty_polls_.load(std::memory_order_relaxed) + 1;
    empty_polls_.store(
        polls, std::memory_order_relaxed);  // a count lost to another poller does not matter
    if (polls % core::tuning::kPollsPerYield == 0) {
      if (events_) events_->on_spinning();
      sched_yield();
    }
    if (Progress* const own = progress()) own->progress();
    // The answer "empty" must be current, as other threads may have run for a long time meanwhile.
    // A program that reads "disconnected" next takes this answer as final: ofi_rxm then destroys
    // the queue pair, which drops the completions that wait here.
    if (empty()) return 0;
  }
  // The thread that held the lock at the fork does not run in the child.
  if (core::generation() != generation_) return 0;
  const std::lock_guard lock(consume_);
  uint32_t tail = tail_.load(std::memory_order_relaxed);
  const uint32_t head = head_.load(std::memory_order_acquire);
  const uint32_t mask = capacity_ - 1;
  int taken = 0;
  while (tail != head && taken < count) {
    // Consecutive completions of one source are reported to it together.
    CompletionSource& source = *ring_[tail & mask].source;
    const uint32_t from = tail;
    uint64_t frees = 0;
    do {
      const Completion& completion = ring_[tail++ & mask];
      frees = completion.frees;
      if (!source.gone()) out[taken++] = completion.wc;
    } while (tail != head && taken < count && ring_[tail & mask].source == &source);
    // Free the places here before those in the work queue: so a completion queue as deep as its
    // work queues never overflows. But count off purged entries first: otherwise a thread that arms
    // meanwhile could take a completion that waits for a purged one, and raise no event.
    const bool gone = source.gone();
    if (gone) pass(source, tail - from, frees);
    tail_.store(tail, std::memory_order_release);
    if (!gone) pass(source, tail - from, frees);
  }
  return taken;
}

CompletionQueue::Waiting CompletionQueue::waiting() {
  Waiting result;
  if (empty() || core::generation() != generation_) return result;
  const std::lock_guard lock(consume_);
  const uint32_t head = head_.load(std::memory_order_acquire);
  for (uint32_t i = tail_.load(std::memory_order_relaxed); i != head; ++i) {
    const Completion& completion = ring_[i & (capacity_ - 1)];
    if (completion.source->gone()) continue;
    ++result.all;
    const bool message =
        completion.wc.status == IBV_WC_SUCCESS && (completion.wc.opcode & IBV_WC_RECV) != 0;
    result.messages += message ? 1 : 0;
  }
  return result;
}

// `count` completions of `source` have left this queue: they were polled, or dropped with the
// source.
void CompletionQueue::pass(CompletionSource& source, uint32_t count, uint64_t frees) {
  source.passed_ += count;
  if (!source.gone()) return source.free(count, frees);
  purged_.store(purged_.load(std::memory_order_relaxed) - count, std::memory_order_relaxed);
  if (source.waiting() > 0) return;
  gone_.remove(source);
  delete &source;
}

// By IBA, arming ignores completions that wait already. But an adapter learns from the doorbell
// that arms how far the program has polled, and raises the event at once when it has completed more
// (mlx5). Programs that arm last and then sleep rely on that. Completions for which an event was
// raised do not count: else every program that arms before it polls would wake twice for each
// completion.
bool CompletionQueue::has_untold(bool solicited_only) const {
  const uint32_t waiting =
      head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_acquire);
  if (waiting <= purged_.load(std::memory_order_relaxed)) return false;
  if (solicited_only) return untold_solicited_ > 0 && untold_solicited_ <= waiting;
  return untold_;
}

void CompletionQueue::arm(bool solicited_only) {
  bool told;
  {
    const std::lock_guard lock(produce_);
    told = has_untold(solicited_only);
    // Arming for solicited completions does not replace an earlier arming for all.
    armed_ = told ? kNotArmed : std::max(armed_, solicited_only ? kSolicited : kAny);
    if (told) {
      untold_ = false;
      untold_solicited_ = 0;
    }
    arms_.store(arms_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  if (told) events_->on_completion_event();
  if (Progress* const own = progress()) own->on_arm();
}

void CompletionQueue::wake(const CompletionSource* whose) {
  {
    const std::lock_guard lock(produce_);
    if (armed_ != kAny || (whose && whose->hushed_)) return;
    armed_ = kNotArmed;
  }
  events_->on_completion_event();
}

void CompletionQueue::hush(CompletionSource& source) {
  const std::lock_guard lock(produce_);
  source.hushed_ = true;
}

uint32_t CompletionQueue::waiting_of(const CompletionSource& source) {
  const std::lock_guard consume_lock(consume_);
  const std::lock_guard produce_lock(produce_);
  return source.waiting();
}

uint32_t CompletionQueue::purge(std::unique_ptr<CompletionSource> source, uint64_t* wr_ids) {
  const std::lock_guard consume_lock(consume_);
  const std::lock_guard produce_lock(produce_);
  const uint32_t waiting = source->waiting();
  if (wr_ids && waiting > 0) {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    for (uint32_t i = tail_.load(std::memory_order_relaxed); i != head; ++i) {
      const Completion& completion = ring_[i & (capacity_ - 1)];
      if (completion.source == source.get()) *wr_ids++ = completion.wc.wr_id;
    }
  }
  if (source->kind_ == CompletionSource::Kind::kSharedQueue) source->free(waiting, 0);
  source->kind_ = CompletionSource::Kind::kGone;
  if (waiting == 0) return 0;
  purged_.store(purged_.load(std::memory_order_relaxed) + waiting, std::memory_order_relaxed);
  gone_.append(*source.release());  // pass() frees it with its last entry
  return waiting;
}

// Copies the entries that were not purged to `to`, consecutively from tail_ on; returns how many.
// Under both locks.
uint32_t CompletionQueue::move_waiting(Completion* to, uint32_t mask) {
  const uint32_t head = head_.load(std::memory_order_relaxed);
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  uint32_t kept = tail;
  for (uint32_t i = tail; i != head; ++i) {
    const Completion completion = ring_[i & (capacity_ - 1)];
    if (completion.source->gone())
      pass(*completion.source, 1, 0);
    else
      to[kept++ & mask] = completion;
  }
  return kept - tail;
}

// Frees the places of purged entries. Called only when the queue is full, so the cost per entry is
// small. A poll may have counted off all of them and not freed their places yet: then waiting for
// it is all that there is to do.
void CompletionQueue::drop_purged() {
  const std::lock_guard consume_lock(consume_);
  const std::lock_guard produce_lock(produce_);
  if (purged_.load(std::memory_order_relaxed) == 0) return;
  set_waiting(move_waiting(ring_.get(), capacity_ - 1));
}

// Under both locks.
void CompletionQueue::set_waiting(uint32_t count) {
  head_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  untold_solicited_ = std::min<uint64_t>(untold_solicited_, count);
}

int CompletionQueue::resize(uint32_t entries) {
  if (entries == 0 || entries > kMostEntries) return EINVAL;
  const uint32_t capacity = std::bit_ceil(entries);
  std::unique_ptr<Completion[]> ring(new (std::nothrow) Completion[capacity]);
  if (!ring) return ENOMEM;
  {
    const std::lock_guard consume_lock(consume_);
    const std::lock_guard produce_lock(produce_);
    const uint32_t waiting =
        head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed);
    if (waiting - purged_.load(std::memory_order_relaxed) > capacity) return EINVAL;
    set_waiting(move_waiting(ring.get(), capacity - 1));
    ring_.swap(ring);
    capacity_ = capacity;
    counters_->capacity.set(capacity);
  }
  return 0;  // the old ring is freed with no lock held
}

}  // namespace uiw::queue
