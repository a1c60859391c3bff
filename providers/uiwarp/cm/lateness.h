// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How long events are kept back under --shake: nothing promises that RDMA_CM_EVENT_ESTABLISHED is
// there before the first message, nor DISCONNECTED with the completions that flush. Pure.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "core/tuning.h"

namespace uiw::cm {

// By what was drawn (core/shaken.h). Half of them are prompt.
constexpr core::Nanoseconds lateness_of(uint64_t drawn) {
  const uint64_t fraction = drawn >> 2;
  switch (drawn % 4) {
    case 0:
      return static_cast<core::Nanoseconds>(fraction % core::tuning::kShortLateness);
    case 1:
      return static_cast<core::Nanoseconds>(fraction % core::tuning::kLongestLateness);
    default:
      return 0;
  }
}

}  // namespace uiw::cm
