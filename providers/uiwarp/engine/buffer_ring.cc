// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/buffer_ring.h"

#include <sys/mman.h>

#include <cerrno>

#include "core/assert.h"
#include "core/tuning.h"

namespace uiw::engine {
namespace {

constexpr size_t kHead = 4096;  // the descriptors, and the alignment of the buffers
constexpr size_t kTotal = kHead + BufferRing::kCount * BufferRing::kSize;

}  // namespace

BufferRing::~BufferRing() {
  if (memory_) munmap(memory_, kTotal);
}

int BufferRing::open(io_uring& ring) {
  void* memory = mmap(nullptr, kTotal, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return ENOMEM;
  memory_ = memory;
  // The kernel has pinned the page of descriptors: after a fork, copy-on-write must not make us
  // write to another page.
  madvise(memory_, kTotal, MADV_DONTFORK);
  entries_ = static_cast<io_uring_buf*>(memory_);

  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uintptr_t>(memory_);
  registration.ring_entries = kCount;
  registration.bgid = kGroup;
  if (int result = io_uring_register_buf_ring(&ring, &registration, 0); result < 0) return -result;

  for (unsigned id = kCount; id > 0; --id) aside_[aside_count_++] = static_cast<uint16_t>(id - 1);
  provide();
  return 0;
}

// Gives the kernel buffers from the top of the stack until it has wanted_ of them.
void BufferRing::provide() {
  bool changed = false;
  while (provided_ < wanted_ && aside_count_ > 0) {
    uint16_t id = aside_[--aside_count_];
    io_uring_buf& entry = entries_[tail_ & (kCount - 1)];
    // Written member by member: entry 0's last member is the ring's tail.
    entry.addr = reinterpret_cast<uintptr_t>(memory_) + kHead + id * kSize;
    entry.len = kSize;
    entry.bid = id;
    ++tail_;
    ++provided_;
    changed = true;
  }
  if (changed) __atomic_store_n(&entries_[0].resv, tail_, __ATOMIC_RELEASE);
}

core::Bytes BufferRing::take(uint16_t id, size_t size) {
  UIW_ASSERT(id < kCount && size <= kSize && provided_ > 0);
  --provided_;
  return {static_cast<const uint8_t*>(memory_) + kHead + id * kSize, size};
}

void BufferRing::put_back(uint16_t id) {
  aside_[aside_count_++] = id;
  if (++calm_ >= core::tuning::kReceivesPerBufferLess) {
    calm_ = 0;
    if (wanted_ > 1) --wanted_;
  }
  provide();
}

void BufferRing::ran_out() {
  calm_ = 0;
  if (wanted_ < kCount) ++wanted_;
  provide();
}

}  // namespace uiw::engine
