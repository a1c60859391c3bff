// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Receive memory: a few large buffers shared by all sockets of an engine. The kernel takes one only
// when bytes arrive, so an idle connection holds none.
//
// The kernel uses buffers first in, first out. If it had all of them, each receive would use the
// one that was unused for longest, in memory that has fallen out of the cache. So it is given only
// as many as one turn of the engine uses, normally one; the others are kept on a stack.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/result.h"

namespace uiw::engine {

// Thread: engine.
class BufferRing {
 public:
  static constexpr uint16_t kGroup = 0;       // buffer group id in the ring
  static constexpr unsigned kCount = 16;      // power of two
  static constexpr size_t kSize = 256 << 10;  // bytes per buffer

  BufferRing() = default;
  BufferRing(const BufferRing&) = delete;
  BufferRing& operator=(const BufferRing&) = delete;
  ~BufferRing();

  // Maps the memory and registers it with `ring`, which must be gone before this object.
  // 0, or errno: ENOMEM, EINVAL (the kernel, older than 5.19, has no buffer rings).
  int open(io_uring& ring);

  // A completion says that the kernel put `size` bytes into buffer `id`. Valid until put_back().
  core::Bytes take(uint16_t id, size_t size);
  // The bytes were processed; the buffer may be given to the kernel again.
  void put_back(uint16_t id);
  // A receive found no buffer: from now on the kernel gets one more.
  void ran_out();

 private:
  void provide();

  void* memory_ = nullptr;  // descriptors on the first page, then the buffers
  io_uring_buf* entries_ = nullptr;
  uint16_t tail_ = 0;
  unsigned provided_ = 0;  // with the kernel
  unsigned wanted_ = 1;    // how many the kernel should have
  unsigned aside_count_ = 0;
  uint16_t aside_[kCount] = {};  // last in, first out
  unsigned calm_ = 0;            // receives since a buffer was missing, or wanted_ was reduced
};

}  // namespace uiw::engine
