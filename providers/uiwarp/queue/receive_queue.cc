// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>

namespace uiw::queue {

std::unique_ptr<ReceiveQueue> ReceiveQueue::create(uint32_t depth, uint32_t max_sge,
                                                   Takers takers) {
  if (max_sge > kMaxSge) return nullptr;
  std::unique_ptr<ReceiveQueue> queue(new (std::nothrow) ReceiveQueue(max_sge, takers));
  if (!queue) return nullptr;
  queue->depth_ = depth;
  // Neither array is cleared, so that a deep queue uses memory only as far as it is filled.
  queue->slots_.reset(new (std::nothrow) Slot[depth]);
  queue->sges_.reset(new (std::nothrow) ibv_sge[size_t{depth} * max_sge]);
  if (!queue->slots_ || !queue->sges_) return nullptr;
  return queue;
}

// post_lock_ is held. After the depth was reduced, more places than that may be in use.
inline uint32_t ReceiveQueue::room_behind(uint32_t posted) const {
  const uint32_t used = posted - static_cast<uint32_t>(freed_.load(std::memory_order_acquire));
  return used < depth_ ? depth_ - used : 0;
}

int ReceiveQueue::post(ibv_recv_wr*& wr) {
  const std::lock_guard lock(post_lock_);
  uint32_t posted = posted_.load(std::memory_order_relaxed);
  for (; wr; wr = wr->next) {
    // A negative count becomes a large one.
    const auto sge_count = static_cast<uint32_t>(wr->num_sge);
    if (sge_count > max_sge_) return EINVAL;
    if (room_behind(posted) == 0) return ENOMEM;
    slots_[newest_] = {wr->wr_id, sge_count};
    ibv_sge* const sges = &sges_[size_t{newest_} * max_sge_];
    for (uint32_t i = 0; i < sge_count; ++i) sges[i] = wr->sg_list[i];
    if (++newest_ == depth_) newest_ = 0;
    posts_->add(1);
    posted_.store(++posted, std::memory_order_release);
    for (ReceiveWaiter* waiter = waiters_; waiter; waiter = waiter->next)
      waiter->on_receive_posted();
  }
  return 0;
}

void ReceiveQueue::await_posts() {
  const std::lock_guard lock(post_lock_);
}

void ReceiveQueue::wait(ReceiveWaiter& waiter) {
  const std::lock_guard lock(post_lock_);
  if (waiter.waiting) return;
  waiter.waiting = true;
  waiter.next = waiters_;
  waiters_ = &waiter;
}

void ReceiveQueue::stop_waiting(ReceiveWaiter& waiter) {
  const std::lock_guard lock(post_lock_);
  if (!waiter.waiting) return;
  waiter.waiting = false;
  ReceiveWaiter** link = &waiters_;
  while (*link != &waiter) link = &(*link)->next;
  *link = waiter.next;
}

bool ReceiveQueue::take(Receive& out, bool& below_limit, uint64_t least) {
  below_limit = false;
  if (takers_ == Takers::kOne) return take_oldest(out, below_limit, least);
  const std::lock_guard lock(take_lock_);
  return take_oldest(out, below_limit, least);
}

inline bool ReceiveQueue::take_oldest(Receive& out, bool& below_limit, uint64_t least) {
  const uint32_t taken = taken_.load(std::memory_order_relaxed);
  const uint32_t waiting = posted_.load(std::memory_order_acquire) - taken;
  if (waiting == 0) return false;
  const Slot& slot = slots_[oldest_];
  out.wr_id = slot.wr_id;
  out.sge_count = slot.sge_count;
  out.frees = taken + 1;
  out.length = 0;
  const ibv_sge* sges = &sges_[size_t{oldest_} * max_sge_];
  for (uint32_t i = 0; i < slot.sge_count; ++i) {
    out.sges[i] = sges[i];
    out.length += sges[i].length;
  }
  if (out.length < least) return false;
  if (++oldest_ == depth_) oldest_ = 0;
  taken_.store(taken + 1, std::memory_order_release);
  if (waiting - 1 < limit_) {
    limit_ = 0;
    below_limit = true;
  }
  return true;
}

// The receive has not completed, so its slot was not reused.
bool ReceiveQueue::give_back() {
  if (takers_ == Takers::kMany) return false;
  oldest_ = (oldest_ == 0 ? depth_ : oldest_) - 1;
  taken_.store(taken_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  return true;
}

void ReceiveQueue::clear() {
  const std::lock_guard lock(post_lock_);
  const uint32_t posted = posted_.load(std::memory_order_relaxed);
  oldest_ = newest_;
  taken_.store(posted, std::memory_order_release);
  freed_.store(posted, std::memory_order_release);
}

uint32_t ReceiveQueue::depth() const {
  const std::lock_guard lock(post_lock_);
  return depth_;
}

uint32_t ReceiveQueue::room() const {
  const std::lock_guard lock(post_lock_);
  return room_behind(posted_.load(std::memory_order_relaxed));
}

int ReceiveQueue::resize(uint32_t depth) {
  std::unique_ptr<Slot[]> slots(new (std::nothrow) Slot[depth]);
  std::unique_ptr<ibv_sge[]> sges(new (std::nothrow) ibv_sge[size_t{depth} * max_sge_]);
  if (!slots || !sges) return ENOMEM;
  {
    const std::scoped_lock lock(post_lock_, take_lock_);
    const uint32_t waiting = count();
    if (waiting > depth || limit_ > depth) return EINVAL;
    for (uint32_t i = 0; i < waiting; ++i) {
      const uint32_t from = (oldest_ + i) % depth_;
      slots[i] = slots_[from];
      std::copy_n(&sges_[size_t{from} * max_sge_], slots[i].sge_count, &sges[size_t{i} * max_sge_]);
    }
    slots_.swap(slots);
    sges_.swap(sges);
    depth_ = depth;
    oldest_ = 0;
    newest_ = waiting == depth ? 0 : waiting;
  }
  return 0;  // the old arrays are freed with no lock held
}

int ReceiveQueue::arm_limit(uint32_t limit) {
  const std::lock_guard lock(take_lock_);
  if (limit > depth_) return EINVAL;
  limit_ = limit;
  return 0;
}

uint32_t ReceiveQueue::limit() const {
  const std::lock_guard lock(take_lock_);
  return limit_;
}

}  // namespace uiw::queue
