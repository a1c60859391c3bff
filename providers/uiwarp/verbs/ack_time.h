// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// InfiniBand's time-outs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.h"

namespace uiw::verbs {

// 4.096 us * 2^exponent. The exponent has five bits, so 31 is the largest.
constexpr core::Nanoseconds ack_time(uint8_t exponent) {
  return core::Nanoseconds{4096} << std::min<int>(exponent, 31);
}

}  // namespace uiw::verbs
