// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells the instruments which receives end with a queue pair. For the stack, and for instruments
// that hold completions back.
#pragma once

#include <cstdint>
#include <span>

#include "core/instrumented.h"
#include "uiwarp/uiwarp-verbs.h"

namespace uiw::core {

// Tells all instruments that no completion of these receives will be polled. Thread: any, with no
// lock held that a call of an instrument may take.
inline void tell_dropped(uint32_t qp_num, std::span<const uint64_t> wr_ids) {
  const uiwarp_verbs* const told = instrumented.load(std::memory_order_acquire);
  if (told && !wr_ids.empty())
    told->receives_dropped(qp_num, wr_ids.data(), static_cast<uint32_t>(wr_ids.size()));
}

}  // namespace uiw::core
