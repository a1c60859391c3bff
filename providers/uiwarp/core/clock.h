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

// A counter that is cheap to read, for short times only: its speed is measured once, and it may
// differ between processors. (Reading the clock costs 25 ns, in some virtual machines 70.)
// UIWARP_VIRTUAL_TIME: tests/sim, where now() is not the system's.
inline uint64_t ticks() {
#if defined(__x86_64__) && !defined(UIWARP_VIRTUAL_TIME)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<uint64_t>(now());
#endif
}

// How many ticks pass in `time`. The first call in a process takes 50 us to measure the speed.
// Thread: any.
uint64_t ticks_in(Nanoseconds time);
// How much time `ticks` take; otherwise the same.
Nanoseconds time_of(uint64_t ticks);

}  // namespace uiw::core
