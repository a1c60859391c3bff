// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A bounded ring between one producing and one consuming role.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

namespace uiw::queue {

template <class T>
class SpscRing {
 public:
  // Makes room for `capacity` elements (at least 1). False when out of memory. Call it before first
  // use.
  bool create(uint32_t capacity) {
    capacity_ = capacity ? capacity : 1;
    slots_.reset(new (std::nothrow) T[capacity_]);
    return slots_ != nullptr;
  }

  // Producer. False when full.
  bool push(const T& value) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) == capacity_) return false;
    slots_[head % capacity_] = value;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Consumer. Null when empty; stays valid until pop().
  T* front() {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) return nullptr;
    return &slots_[tail % capacity_];
  }
  void pop() { tail_.fetch_add(1, std::memory_order_release); }

  // Either side. The other side may change it at any time.
  uint32_t size() const {
    return static_cast<uint32_t>(head_.load(std::memory_order_acquire) -
                                 tail_.load(std::memory_order_acquire));
  }

 private:
  uint32_t capacity_ = 0;
  std::unique_ptr<T[]> slots_;
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace uiw::queue
