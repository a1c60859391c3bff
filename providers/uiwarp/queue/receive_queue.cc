// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>

namespace uiw::queue {

std::unique_ptr<ReceiveQueue> ReceiveQueue::create(uint32_t depth, uint32_t max_sge) {
  if (max_sge > kMaxSge) return nullptr;
  std::unique_ptr<ReceiveQueue> queue(new (std::nothrow) ReceiveQueue);
  if (!queue) return nullptr;
  queue->depth_ = depth;
  queue->max_sge_ = max_sge;
  // Neither array is cleared, so that a deep queue costs memory only as far as it is used.
  queue->slots_.reset(new (std::nothrow) Slot[depth]);
  queue->sges_.reset(new (std::nothrow) ibv_sge[size_t{depth} * max_sge]);
  if (!queue->slots_ || !queue->sges_) return nullptr;
  return queue;
}

int ReceiveQueue::post(const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge_) return EINVAL;
  const std::lock_guard lock(lock_);
  if (count_ == depth_) return ENOMEM;
  uint32_t index = oldest_ + count_;
  if (index >= depth_) index -= depth_;
  slots_[index] = {wr.wr_id, static_cast<uint32_t>(wr.num_sge)};
  std::copy_n(wr.sg_list, wr.num_sge, &sges_[size_t{index} * max_sge_]);
  ++count_;
  for (ReceiveWaiter* waiter = waiters_; waiter; waiter = waiter->next) waiter->on_receive_posted();
  return 0;
}

void ReceiveQueue::wait(ReceiveWaiter& waiter) {
  const std::lock_guard lock(lock_);
  if (waiter.waiting) return;
  waiter.waiting = true;
  waiter.next = waiters_;
  waiters_ = &waiter;
}

void ReceiveQueue::stop_waiting(ReceiveWaiter& waiter) {
  const std::lock_guard lock(lock_);
  if (!waiter.waiting) return;
  waiter.waiting = false;
  ReceiveWaiter** link = &waiters_;
  while (*link != &waiter) link = &(*link)->next;
  *link = waiter.next;
}

bool ReceiveQueue::take(Receive& out, bool& below_limit) {
  below_limit = false;
  const std::lock_guard lock(lock_);
  if (count_ == 0) return false;
  const Slot& slot = slots_[oldest_];
  out.wr_id = slot.wr_id;
  out.sge_count = slot.sge_count;
  out.length = 0;
  const ibv_sge* sges = &sges_[size_t{oldest_} * max_sge_];
  for (uint32_t i = 0; i < slot.sge_count; ++i) {
    out.sges[i] = sges[i];
    out.length += sges[i].length;
  }
  if (++oldest_ == depth_) oldest_ = 0;
  --count_;
  if (count_ < limit_) {
    limit_ = 0;
    below_limit = true;
  }
  return true;
}

bool ReceiveQueue::empty() const {
  return count() == 0;
}

uint32_t ReceiveQueue::count() const {
  const std::lock_guard lock(lock_);
  return count_;
}

uint32_t ReceiveQueue::depth() const {
  const std::lock_guard lock(lock_);
  return depth_;
}

int ReceiveQueue::resize(uint32_t depth) {
  std::unique_ptr<Slot[]> slots(new (std::nothrow) Slot[depth]);
  std::unique_ptr<ibv_sge[]> sges(new (std::nothrow) ibv_sge[size_t{depth} * max_sge_]);
  if (!slots || !sges) return ENOMEM;
  {
    const std::lock_guard lock(lock_);
    if (count_ > depth || limit_ > depth) return EINVAL;
    for (uint32_t i = 0; i < count_; ++i) {
      const uint32_t from = (oldest_ + i) % depth_;
      slots[i] = slots_[from];
      std::copy_n(&sges_[size_t{from} * max_sge_], slots[i].sge_count, &sges[size_t{i} * max_sge_]);
    }
    slots_.swap(slots);
    sges_.swap(sges);
    depth_ = depth;
    oldest_ = 0;
  }
  return 0;  // the old arrays are freed with no lock held
}

int ReceiveQueue::arm_limit(uint32_t limit) {
  const std::lock_guard lock(lock_);
  if (limit > depth_) return EINVAL;
  limit_ = limit;
  return 0;
}

uint32_t ReceiveQueue::limit() const {
  const std::lock_guard lock(lock_);
  return limit_;
}

}  // namespace uiw::queue
