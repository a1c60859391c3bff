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

// A counter that is cheap to read and counts roughly thousands of millions per second; for telling
// "at once" from "later" only. (The clock costs 70 ns in virtual machines.)
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<uint64_t>(now()) * 3;
#endif
}

}  // namespace uiw::core
