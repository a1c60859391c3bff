// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/tx_batch.h"

#include <algorithm>
#include <memory>
#include <new>

#include "core/assert.h"
#include "core/copy.h"
#include "core/per_process.h"
#include "core/stock.h"

namespace uiw::qp {

void TxBatch::reset() {
  for (uint32_t i = 0; i < ref_count_; ++i) refs_[i].reset();
  ref_count_ = 0;
  detached_.reset();
  total_ = sent_ = 0;
  piece_count_ = first_piece_ = fpdu_count_ = next_mark_ = arena_used_ = 0;
}

bool TxBatch::allocate() {
  arena_ = core::allocate_pages(kArenaBegins + kArena);
  return arena_ != nullptr;
}

bool TxBatch::holds(const mem::Region& region) const {
  for (uint32_t i = 0; i < ref_count_; ++i)
    if (&*refs_[i] == &region) return true;
  return false;
}

bool TxBatch::holds_revoked() const {
  return std::any_of(refs_, refs_ + ref_count_,
                     [](const mem::RegionRef& region) { return !region->is_live(region->stag); });
}

bool TxBatch::hold(mem::RegionRef&& region) {
  if (ref_count_ == kMaxRefs) return false;
  refs_[ref_count_++] = std::move(region);
  return true;
}

void TxBatch::advance(uint64_t octets) {
  UIW_ASSERT(octets <= total_ - sent_);
  sent_ += octets;
  while (octets > 0) {
    iovec& piece = pieces_[first_piece_];
    if (octets < piece.iov_len) {
      piece.iov_base = static_cast<uint8_t*>(piece.iov_base) + octets;
      piece.iov_len -= octets;
      return;
    }
    octets -= piece.iov_len;
    ++first_piece_;
  }
}

void TxBatch::cut_to_current_fpdu() {
  // marks_[next_mark_] is the first FPDU not wholly sent; its start is the previous mark's end.
  const uint64_t start = next_mark_ > 0 ? marks_[next_mark_ - 1].end : 0;
  const uint64_t keep_to = sent_ > start ? marks_[next_mark_].end : sent_;
  uint64_t keep = keep_to - sent_;
  uint32_t last = first_piece_;
  while (keep > 0) {
    iovec& piece = pieces_[last++];
    if (piece.iov_len > keep) piece.iov_len = keep;
    keep -= piece.iov_len;
  }
  piece_count_ = last;
  total_ = keep_to;
  fpdu_count_ = next_mark_ + (keep_to > sent_ ? 1 : 0);
}

bool TxBatch::detach() {
  size_t foreign = 0;
  const auto in_arena = [this](const iovec& piece) {
    const auto* base = static_cast<const uint8_t*>(piece.iov_base);
    return base >= arena_.get() && base < arena_end();
  };
  for (uint32_t i = first_piece_; i < piece_count_; ++i)
    if (!in_arena(pieces_[i])) foreign += pieces_[i].iov_len;
  if (foreign > 0) {
    std::unique_ptr<uint8_t[]> copy(new (std::nothrow) uint8_t[foreign]);
    if (!copy) return false;
    uint8_t* to = copy.get();
    for (uint32_t i = first_piece_; i < piece_count_; ++i) {
      if (in_arena(pieces_[i])) continue;
      core::copy(to, pieces_[i].iov_base, pieces_[i].iov_len);
      pieces_[i].iov_base = to;
      to += pieces_[i].iov_len;
    }
    detached_ = std::move(copy);
  }
  for (uint32_t i = 0; i < ref_count_; ++i) refs_[i].reset();
  ref_count_ = 0;
  return true;
}

namespace {

// Per process: a fork may come while another thread uses it.
constinit core::PerProcess<core::Stock<TxBatch>> stock;

}  // namespace

TxBatch* TxBatchPool::take() {
  core::Stock<TxBatch>* const own = stock.get();
  if (!own) return nullptr;
  return own->take([]() -> TxBatch* {
    std::unique_ptr<TxBatch> batch(new (std::nothrow) TxBatch);
    return batch && batch->allocate() ? batch.release() : nullptr;
  });
}

void TxBatchPool::give(TxBatch* batch) {
  batch->reset();
  stock.get()->give(batch, [](TxBatch* surplus) { delete surplus; });
}

}  // namespace uiw::qp
