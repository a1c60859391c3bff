// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/fingerprint.h"

#include <sys/mman.h>

#include <cerrno>

#include "core/crc32c.h"
#include "core/pages.h"

namespace uiw::check {
namespace {

constexpr size_t kPiece = 256, kPieces = 16;

// Of the system calls that tell, the cheapest: it does nothing (MS_ASYNC), but to what is not
// mapped.
bool is_mapped(uintptr_t first, size_t size) {
  const uintptr_t page = first & ~uintptr_t{core::kPage - 1};
  return msync(reinterpret_cast<void*>(page), first + size - page, MS_ASYNC) == 0 ||
         errno != ENOMEM;
}

}  // namespace

bool fingerprint(const void* memory, size_t size, uint32_t& value) {
  if (size == 0) return true;
  if (!is_mapped(reinterpret_cast<uintptr_t>(memory), size)) return false;
  const auto* const bytes = static_cast<const uint8_t*>(memory);
  if (size <= kPiece * kPieces) {
    value = core::crc32c_update(value, bytes, size);
    return true;
  }
  // The last one ends where the memory does.
  for (size_t i = 0; i + 1 < kPieces; ++i)
    value = core::crc32c_update(value, bytes + (size - kPiece) / (kPieces - 1) * i, kPiece);
  value = core::crc32c_update(value, bytes + size - kPiece, kPiece);
  return true;
}

}  // namespace uiw::check
