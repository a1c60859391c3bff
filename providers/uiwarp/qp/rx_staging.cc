// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/rx_staging.h"

#include <utility>

#include "core/copy.h"
#include "core/pages.h"
#include "core/per_process.h"
#include "core/stock.h"
#include "mpa/framing.h"

namespace uiw::qp {

namespace {

// Room for one FPDU of any size; such buffers are kept for reuse. Larger ones (everything received
// behind a missing receive) are freed.
constexpr size_t kUsual = core::whole_pages(mpa::kMaxFpdu);
struct Usual {  // the first bytes of a buffer that is kept
  Usual* next_in_stock;
};
// Per process: a fork may come while another thread uses it.
constinit core::PerProcess<core::Stock<Usual>> stock;

core::Pages take_usual() {
  core::Stock<Usual>* const own = stock.get();
  if (!own) return {};
  Usual* const usual = own->take([] {
    // Nothing to construct.
    return reinterpret_cast<Usual*>(core::map_pages(kUsual));
  });
  return core::Pages(reinterpret_cast<uint8_t*>(usual), core::FreePages{kUsual});
}

void give_usual(core::Pages data) {
  stock.get()->give(reinterpret_cast<Usual*>(data.release()), [](Usual* surplus) {
    core::FreePages{kUsual}(reinterpret_cast<uint8_t*>(surplus));
  });
}

}  // namespace

RxStaging::RxStaging(RxStaging&& other) noexcept
    : data_(std::move(other.data_)), size_(other.size_), capacity_(other.capacity_) {
  other.size_ = other.capacity_ = 0;
}

bool RxStaging::append(core::Bytes octets) {
  const size_t needed = size_ + octets.size();
  if (needed > capacity_) {
    const size_t capacity = needed <= kUsual ? kUsual : needed * 2;
    core::Pages larger = capacity == kUsual ? take_usual() : core::allocate_pages(capacity);
    if (!larger) return false;
    const size_t kept = size_;
    if (kept > 0) core::copy(larger.get(), data_.get(), kept);
    clear();
    data_ = std::move(larger);
    size_ = kept;
    capacity_ = capacity;
  }
  if (!octets.empty()) core::copy(data_.get() + size_, octets.data(), octets.size());
  size_ = needed;
  return true;
}

void RxStaging::clear() {
  if (capacity_ == kUsual) give_usual(std::move(data_));
  data_.reset();
  size_ = capacity_ = 0;
}

}  // namespace uiw::qp
