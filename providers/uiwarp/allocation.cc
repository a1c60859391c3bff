// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where objects of libuiwarp.so.0 get their memory: new and delete of this library only.
//
// All of it comes from malloc() and goes to free(): a program that replaces these two need not have
// replaced aligned_alloc(), whose memory its free() would not know. Memcheck replaces all three,
// and takes what only a pointer to its middle leads to for perhaps lost: there, aligned_alloc() is
// used.
//
// What may fail is written new (std::nothrow), and its caller answers ENOMEM. The containers of the
// standard library have no such form, and an exception would end the process: where malloc() fails
// them they draw on a reserve, so that the next one who may fail can say so.
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "core/log.h"
#include "core/pages.h"
#include "core/spinlock.h"
#include "core/valgrind.h"

namespace {

namespace core = uiw::core;

// Bytes. The entries that one process adds to tables between two allocations that may fail;
// untouched, and so no memory, until the first is needed.
constexpr size_t kReserve = size_t{1} << 20;

struct Reserve {
  core::Spinlock lock;
  size_t used = 0;   // under lock
  size_t alive = 0;  // pieces in use, under lock
  alignas(core::kPage) char memory[kReserve] = {};

  bool holds(const void* piece) const {
    return reinterpret_cast<uintptr_t>(piece) - reinterpret_cast<uintptr_t>(memory) < kReserve;
  }

  void* take(size_t size, size_t alignment) {
    const std::lock_guard hold(lock);
    const size_t start = (used + alignment - 1) & ~(alignment - 1);
    if (start > kReserve || size > kReserve - start) return nullptr;
    used = start + size;
    ++alive;
    return memory + start;
  }

  void give_back() {
    const std::lock_guard hold(lock);
    if (--alive == 0) used = 0;
  }
};

constinit Reserve reserve;

constexpr size_t kPlain = alignof(std::max_align_t);  // what malloc() gives

void* take(size_t size, size_t alignment) {
  if (alignment <= kPlain) return malloc(size != 0 ? size : 1);
  if (size > PTRDIFF_MAX - alignment) return nullptr;
  if (core::under_memcheck()) [[unlikely]]
    return aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  // What malloc() gave stands before the first byte: it gives multiples of 8, so there is room for
  // a pointer.
  void* all = malloc(size + alignment);
  if (all == nullptr) return nullptr;
  const uintptr_t start = (reinterpret_cast<uintptr_t>(all) + alignment) & ~(alignment - 1);
  auto** piece = reinterpret_cast<void**>(start);
  piece[-1] = all;
  return piece;
}

void give_back(void* piece, size_t alignment) {
  if (piece == nullptr) return;
  if (reserve.holds(piece)) [[unlikely]]
    return reserve.give_back();
  const bool whole = alignment <= kPlain || core::under_memcheck();
  free(whole ? piece : static_cast<void**>(piece)[-1]);
}

void* take_surely(size_t size, size_t alignment) {
  void* piece = take(size, alignment);
  if (piece == nullptr) [[unlikely]]
    piece = reserve.take(size, alignment);
  if (piece != nullptr) [[likely]]
    return piece;
  core::log(core::LogLevel::kError,
            "no memory for %zu bytes, and the reserve is used up: this process cannot go on", size);
  abort();
}

size_t of(std::align_val_t alignment) {
  return static_cast<size_t>(alignment);
}

}  // namespace

void* operator new(size_t size) {
  return take_surely(size, kPlain);
}
void* operator new[](size_t size) {
  return take_surely(size, kPlain);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return take_surely(size, of(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return take_surely(size, of(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return take(size, kPlain);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return take(size, kPlain);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(size, of(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(size, of(alignment));
}

void operator delete(void* piece) noexcept {
  give_back(piece, kPlain);
}
void operator delete[](void* piece) noexcept {
  give_back(piece, kPlain);
}
void operator delete(void* piece, size_t) noexcept {
  give_back(piece, kPlain);
}
void operator delete[](void* piece, size_t) noexcept {
  give_back(piece, kPlain);
}
void operator delete(void* piece, const std::nothrow_t&) noexcept {
  give_back(piece, kPlain);
}
void operator delete[](void* piece, const std::nothrow_t&) noexcept {
  give_back(piece, kPlain);
}
void operator delete(void* piece, std::align_val_t alignment) noexcept {
  give_back(piece, of(alignment));
}
void operator delete[](void* piece, std::align_val_t alignment) noexcept {
  give_back(piece, of(alignment));
}
void operator delete(void* piece, size_t, std::align_val_t alignment) noexcept {
  give_back(piece, of(alignment));
}
void operator delete[](void* piece, size_t, std::align_val_t alignment) noexcept {
  give_back(piece, of(alignment));
}
void operator delete(void* piece, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  give_back(piece, of(alignment));
}
void operator delete[](void* piece, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  give_back(piece, of(alignment));
}
