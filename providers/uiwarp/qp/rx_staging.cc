// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/rx_staging.h"

#include <cstring>
#include <mutex>
#include <new>

#include "core/spinlock.h"
#include "mpa/framing.h"

namespace uiw::qp {

namespace {

// One FPDU of any size; kept for reuse. Larger ones (a whole read behind a missing receive) are
// freed.
constexpr size_t kUsual = mpa::kMaxFpdu;
constexpr uint32_t kKept = 16;
core::Spinlock pool_lock;
uint8_t* pool[kKept];
uint32_t pooled = 0;

uint8_t* take_usual() {
  {
    std::lock_guard guard(pool_lock);
    if (pooled > 0) return pool[--pooled];
  }
  return new (std::nothrow) uint8_t[kUsual];
}

void give_usual(uint8_t* data) {
  {
    std::lock_guard guard(pool_lock);
    if (pooled < kKept) {
      pool[pooled++] = data;
      return;
    }
  }
  delete[] data;
}

}  // namespace

RxStaging::RxStaging(RxStaging&& other) noexcept
    : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
  other.data_ = nullptr;
  other.size_ = other.capacity_ = 0;
}

bool RxStaging::append(core::Bytes octets) {
  const size_t needed = size_ + octets.size();
  if (needed > capacity_) {
    const size_t capacity = needed <= kUsual ? kUsual : needed * 2;
    uint8_t* larger = capacity == kUsual ? take_usual() : new (std::nothrow) uint8_t[capacity];
    if (!larger) return false;
    const size_t kept = size_;
    if (kept > 0) std::memcpy(larger, data_, kept);
    clear();
    data_ = larger;
    size_ = kept;
    capacity_ = capacity;
  }
  if (!octets.empty()) std::memcpy(data_ + size_, octets.data(), octets.size());
  size_ = needed;
  return true;
}

void RxStaging::clear() {
  if (data_) {
    if (capacity_ == kUsual) {
      give_usual(data_);
    } else {
      delete[] data_;
    }
  }
  data_ = nullptr;
  size_ = capacity_ = 0;
}

}  // namespace uiw::qp
