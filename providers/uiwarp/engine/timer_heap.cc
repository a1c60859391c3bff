// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/timer_heap.h"

namespace uiw::engine {

bool TimerHeap::before(const Timer& a, const Timer& b) {
  if (a.deadline_ != b.deadline_) return a.deadline_ < b.deadline_;
  return a.sequence_ < b.sequence_;
}

// Joins two heaps: the root with the later deadline becomes the first child of the other.
Timer* TimerHeap::meld(Timer* a, Timer* b) {
  if (!a) return b;
  if (!b) return a;
  if (before(*b, *a)) {
    Timer* swap = a;
    a = b;
    b = swap;
  }
  b->prev_ = a;
  b->next_ = a->child_;
  if (b->next_) b->next_->prev_ = b;
  a->child_ = b;
  return a;
}

// Melds a list of siblings pairwise from the left, then the pairs from the right: the order that
// gives the pairing heap its amortised bound.
Timer* TimerHeap::meld_siblings(Timer* first) {
  Timer* pairs = nullptr;  // linked by next_, last pair first
  while (first) {
    Timer* a = first;
    Timer* b = a->next_;
    first = b ? b->next_ : nullptr;
    a->next_ = a->prev_ = nullptr;
    if (b) b->next_ = b->prev_ = nullptr;
    Timer* pair = meld(a, b);
    pair->next_ = pairs;
    pairs = pair;
  }
  Timer* root = nullptr;
  while (pairs) {
    Timer* pair = pairs;
    pairs = pair->next_;
    pair->next_ = nullptr;
    root = meld(root, pair);
  }
  return root;
}

void TimerHeap::arm(Engine* engine, Timer& timer, core::Nanoseconds deadline) {
  disarm(timer);
  timer.engine_ = engine;
  timer.deadline_ = deadline;
  timer.sequence_ = next_sequence_++;
  timer.armed_ = true;
  root_ = meld(root_, &timer);
}

void TimerHeap::disarm(Timer& timer) {
  if (!timer.armed_) return;
  timer.armed_ = false;
  Timer* orphans = meld_siblings(timer.child_);
  timer.child_ = nullptr;
  if (&timer == root_) {
    root_ = orphans;
    return;
  }
  if (timer.prev_->child_ == &timer) {
    timer.prev_->child_ = timer.next_;
  } else {
    timer.prev_->next_ = timer.next_;
  }
  if (timer.next_) timer.next_->prev_ = timer.prev_;
  timer.next_ = timer.prev_ = nullptr;
  root_ = meld(root_, orphans);
}

void TimerHeap::expire(core::Nanoseconds now) {
  const uint64_t armed_before = next_sequence_;
  while (root_ && root_->deadline_ <= now && root_->sequence_ < armed_before) {
    Timer& timer = *root_;
    disarm(timer);
    timer.expire();
  }
}

}  // namespace uiw::engine
