// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Placing what comes as no RFC forbids it, and nobody does it: for programs under --shake.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "core/bytes.h"
#include "core/copy.h"
#include "qp/place.h"

namespace uiw::qp {

// The end of what has come first, then, behind `pause`, the rest. RFC 5040 5.5 promises nothing of
// the order until something completes.
template <class Pause>
void place_end_first(uint8_t* to, core::Bytes payload, Pause pause) {
  const size_t before = payload.size() - std::min<size_t>(payload.size(), kPlacedLast);
  std::memcpy(to + before, payload.data() + before, payload.size() - before);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps them apart
  pause();
  core::copy(to, payload.data(), before);
}

// How a process places, by what was drawn (core/shaken.h). Pure.
Place place_by(uint64_t drawn);

}  // namespace uiw::qp
