// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Has memory changed? Of long memory pieces are looked at that are spread over it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uiw::check {

enum class Look {
  kSeen,
  kUnreadable,  // some of it is not mapped, or not to be read
  kForbidden,   // the system does not let us find out
};

// Goes on with `value`. The system reads, so that memory which goes meanwhile is no fault. Thread:
// any; no cancellation point.
Look fingerprint(const void* memory, size_t size, uint32_t& value);

}  // namespace uiw::check
