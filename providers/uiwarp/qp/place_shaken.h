// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copies payload in an order that the RFCs allow and no adapter uses: for programs under --shake.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "core/bytes.h"
#include "core/copy.h"
#include "qp/place.h"

namespace uiw::qp {

// Copies the end of the payload first, then, after `pause`, the rest. RFC 5040 5.5 promises no
// order before a completion.
template <class Pause>
void place_end_first(uint8_t* to, core::Bytes payload, Pause pause) {
  const size_t before = payload.size() - std::min<size_t>(payload.size(), kPlacedLast);
  std::memcpy(to + before, payload.data() + before, payload.size() - before);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the compiler from joining the
                                                        // copies
  pause();
  core::copy(to, payload.data(), before);
}

// Chooses how this process copies, by the number drawn (core/shaken.h). Pure.
Place place_by(uint64_t drawn);

}  // namespace uiw::qp
