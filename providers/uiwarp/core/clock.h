// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Monotonic time. Pure layers get time as an argument; only engine/ reads the clock.
#pragma once

#include <cstdint>

namespace uiw::core {

using Nanoseconds = int64_t;
inline constexpr Nanoseconds kMicrosecond = 1'000;
inline constexpr Nanoseconds kMillisecond = 1'000'000;
inline constexpr Nanoseconds kSecond = 1'000'000'000;

Nanoseconds now();  // CLOCK_MONOTONIC

}  // namespace uiw::core
