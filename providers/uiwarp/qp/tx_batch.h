// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// FPDUs that are built and not yet taken by TCP: the pieces of one sendmsg(). Headers, pads, CRCs
// and copied payload lie in the arena, and are merged into one piece where they are adjacent. Other
// payload is sent from its place in memory. A QP owns a batch only while it has bytes to send: see
// TxBatchPool.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/pages.h"
#include "mem/table.h"

namespace uiw::qp {

class TxBatch {
 public:
  // On an Ethernet, three packets of 45 FPDUs; each FPDU is two pieces when its payload is sent in
  // place.
  static constexpr uint32_t kMaxFpdus = 135;
  static constexpr uint32_t kMaxPieces = 320;
  static constexpr uint32_t kArena = 512 * 1024;  // enough for kPacketsPerCopiedBatch in tx.cc
  static constexpr uint32_t kMaxRefs = 8;

  // Call it before anything else. False when out of memory.
  bool allocate();
  void reset();

  // --- building ---
  uint8_t* arena_end() { return arena_.get() + kArenaBegins + arena_used_; }
  uint32_t arena_room() const { return kArena - arena_used_; }
  // Adds the next `size` bytes of the arena, which were written at arena_end().
  void add_from_arena(uint32_t size) {
    uint8_t* start = arena_end();
    arena_used_ += size;
    total_ += size;
    if (piece_count_ > first_piece_) {
      iovec& last = pieces_[piece_count_ - 1];
      if (static_cast<uint8_t*>(last.iov_base) + last.iov_len == start) {
        last.iov_len += size;
        return;
      }
    }
    pieces_[piece_count_++] = {start, size};
  }
  // Adds `size` bytes at `memory`, which must stay valid until they are sent or detach() is called.
  void add_in_place(const void* memory, uint32_t size) {
    pieces_[piece_count_++] = {const_cast<void*>(memory), size};
    total_ += size;
  }
  // Ends an FPDU. `completed_slot`: the WR whose last byte this FPDU carries, or kNoSlot.
  void end_fpdu(uint64_t completed_slot) { marks_[fpdu_count_++] = {total_, completed_slot}; }
  // Keeps a reference to a region. False when there is no room for another.
  bool hold(mem::RegionRef&& region);
  bool holds(const mem::Region& region) const;
  // Whether there is room for an FPDU of this size, and the batch has no more than `limit` bytes.
  bool has_room(uint32_t pieces, uint32_t arena_octets, uint32_t limit) const {
    return piece_count_ + pieces <= kMaxPieces && arena_room() >= arena_octets &&
           fpdu_count_ < kMaxFpdus && total_ <= limit;
  }
  uint64_t total() const { return total_; }

  // --- sending ---
  bool empty() const { return sent_ == total_; }
  const iovec* pieces() const { return pieces_ + first_piece_; }
  uint32_t piece_count() const { return piece_count_ - first_piece_; }
  // TCP took `octets`. Calls done(slot) for every WR whose last byte was among them.
  template <class Done>
  void consume(uint64_t octets, Done&& done) {
    advance(octets);
    while (next_mark_ < fpdu_count_ && marks_[next_mark_].end <= sent_) {
      const uint64_t slot = marks_[next_mark_++].slot;
      if (slot != ~0ull) done(slot);
    }
  }

  // Drops the FPDUs of which TCP has taken nothing; what remains is at most the rest of one. RFC
  // 5040 7.1: a Terminate may follow only a whole FPDU.
  void cut_to_current_fpdu();
  // Copies pieces that still point into application or registered memory, so that this memory may
  // be freed, and drops all references. False when out of memory (the batch is then unusable).
  bool detach();
  bool holds_memory() const { return ref_count_ > 0; }
  // Whether it holds a region whose deregistration has begun and waits for this reference.
  bool holds_revoked() const;

  TxBatch* next_in_stock = nullptr;

 private:
  struct Mark {
    uint64_t end;  // bytes of the batch up to and including this FPDU
    uint64_t slot;
  };
  // Offset of the arena in its page, so that the kernel's copy to the beginning of a page is not
  // slow (core/copy.h).
  static constexpr uint32_t kArenaBegins = 64;
  void advance(uint64_t octets);

  core::Pages arena_;  // kArena bytes after kArenaBegins
  iovec pieces_[kMaxPieces];
  Mark marks_[kMaxFpdus + 2];  // two more for an arrival hint and a Terminate
  mem::RegionRef refs_[kMaxRefs];
  std::unique_ptr<uint8_t[]> detached_;
  uint64_t total_ = 0, sent_ = 0;
  uint32_t piece_count_ = 0, first_piece_ = 0;
  uint32_t fpdu_count_ = 0, next_mark_ = 0;
  uint32_t ref_count_ = 0;
  uint32_t arena_used_ = 0;
};

// Batches not in use, kept for the next sender (core/stock.h). Thread: any.
class TxBatchPool {
 public:
  static TxBatch* take();  // null when out of memory
  static void give(TxBatch* batch);
};

}  // namespace uiw::qp
