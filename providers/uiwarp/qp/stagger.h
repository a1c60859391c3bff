// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Stream positions where a large payload should not begin, between two uiwarps. Pure. Thread: any.
//
// If no bytes are in flight, the kernel puts a message at the beginning of a page, and copies with
// `rep movsb`. On AMD processors that is slow when its destination offset in a page is less than 64
// bytes beyond its source offset: 64 KiB took 9 us instead of 2 where another processor had read
// the destination. Programs usually have their buffers at the beginning of a page, so a payload
// behind a header of 20 bytes is just such a case. So empty Writes, which place nothing (RFC 5041
// 5.2), are sent before it. doc/decisions/015-where-a-payload-begins.md
#pragma once

#include <cstdint>

#include "core/copy.h"

namespace uiw::qp::stagger {

inline constexpr uint32_t kDistance = 64;  // bytes

// Whether copying from `source` to stream position `position` is slow.
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
