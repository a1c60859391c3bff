// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copies the payload of a Write into memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/bytes.h"
#include "core/copy.h"

namespace uiw::qp {

// The end of a Write is written by one store of at most this many bytes, after all bytes before it.
constexpr uint32_t kPlacedLast = 8;

template <class Word>
bool place_last(uint8_t* to, core::Bytes payload) {
  if (payload.size() < sizeof(Word) ||
      reinterpret_cast<uintptr_t>(to + payload.size()) % alignof(Word) != 0)
    return false;
  const size_t before = payload.size() - sizeof(Word);
  Word last;
  std::memcpy(&last, payload.data() + before, sizeof last);
  core::copy(to, payload.data(), before);
  __atomic_store_n(reinterpret_cast<Word*>(to + before), last, __ATOMIC_RELEASE);
  return true;
}

// Programs without a completion watch the last bytes of a Write in memory: when these change, the
// rest must be there. No RFC promises that (RFC 5040 5.5), but every adapter does it. memcpy() does
// not: glibc's stores the first bytes last. A counter or flag of 8, 4 or 2 bytes at the end is not
// torn.
inline void place(uint8_t* to, core::Bytes payload) {
  if (payload.empty()) return;
  static_cast<void>(place_last<uint64_t>(to, payload) || place_last<uint32_t>(to, payload) ||
                    place_last<uint16_t>(to, payload) || place_last<uint8_t>(to, payload));
}

using Place = void (*)(uint8_t* to, core::Bytes payload);

}  // namespace uiw::qp
