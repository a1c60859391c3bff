// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copying payloads. Thread: any.
//
// From 2 KiB up the C library copies with `rep movsb` if the processor reports that this is fast.
// On AMD processors since Zen 3 it is 20 times slower (2 GB/s) when the destination's offset in its
// page is 1 to 31 bytes beyond the source's (glibc's bug 30994). This is the case for a buffer at
// the beginning of a page that is copied behind a header, or into memory from malloc(), which
// begins 16 bytes into a page. doc/decisions/015-where-a-payload-begins.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/pages.h"

namespace uiw::core {

// Whether the offset of `to` in its page is 1 to `distance` - 1 bytes beyond that of `from`. Pure.
inline constexpr bool little_ahead(uint64_t to, uint64_t from, uint32_t distance) {
  const uint64_t ahead = (to - from) % kPage;
  return ahead > 0 && ahead < distance;
}

// Whether `rep movsb` from `from` to `to` may be slow. On processors where it is not, a true costs
// nothing. Pure.
inline bool copies_slowly(const void* to, const void* from) {
  return little_ahead(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), 32);
}

// The bytes of one vector register.
using Octets16 [[gnu::vector_size(16)]] = uint8_t;
inline Octets16 load16(const uint8_t* from) {
  Octets16 value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store16(uint8_t* to, Octets16 value) {
  std::memcpy(to, &value, sizeof value);
}

// Like memcpy(), for copies that may be large.
inline void copy(void* to, const void* from, size_t size) {
  constexpr size_t kStringInstruction = 2048, kBlock = 64;
  auto* at = static_cast<uint8_t*>(to);
  auto* source = static_cast<const uint8_t*>(from);
  if (size >= kStringInstruction && copies_slowly(to, from)) {
    for (; size >= kBlock; size -= kBlock, at += kBlock, source += kBlock) {
      const Octets16 first = load16(source), second = load16(source + 16),
                     third = load16(source + 32), fourth = load16(source + 48);
      store16(at, first);
      store16(at + 16, second);
      store16(at + 32, third);
      store16(at + 48, fourth);
    }
  }
  std::memcpy(at, source, size);
}

}  // namespace uiw::core
