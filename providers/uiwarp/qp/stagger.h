// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where in the stream a large payload should not begin, between two uiwarps. Pure. Thread: any.
//
// The kernel lays a message that nothing is on its way before at the beginning of a page, and
// copies with `rep movsb`. On AMD processors that is slow while it stores less than 64 bytes
// further into a page than it loads from: 64 KiB took 9 us instead of 2 where another processor had
// read what is stored to. A payload from the beginning of a page, which is where programs have
// their buffers, lies right there: behind a header of 20 bytes. So empty Writes go before it,
// which place nothing (RFC 5041 5.2). doc/decisions/015-where-a-payload-begins.md
#pragma once

#include <cstdint>

#include "core/copy.h"

namespace uiw::qp::stagger {

inline constexpr uint32_t kDistance = 64;  // bytes

// Whether bytes from `source` are copied slowly to where the stream has `position`.
inline constexpr bool stumbles(uint64_t position, uint64_t source) {
  return core::little_ahead(position, source, kDistance);
}

// Whether this processor is one of those.
inline bool worth_it() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

}  // namespace uiw::qp::stagger
