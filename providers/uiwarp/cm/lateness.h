// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How long events are held back under --shake: nothing guarantees that RDMA_CM_EVENT_ESTABLISHED
// comes before the first message, or DISCONNECTED together with flushed completions. Pure.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "core/tuning.h"

namespace uiw::cm {

// `drawn`: a number from core/shaken.h. Half of the events are not held back.
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
