// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/clock.h"

#include <time.h>

#include <algorithm>
#include <atomic>

namespace uiw::core {

Nanoseconds now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

namespace {

// Scaled by 1024, so that no floating point is needed later.
uint64_t ticks_in_1024_ns() {
  constexpr Nanoseconds kMeasured = 50 * kMicrosecond;
  const Nanoseconds begin = now();
  const uint64_t first = ticks();
  Nanoseconds end;
  do {
    end = now();
  } while (end - begin < kMeasured);
  return std::max<uint64_t>(1, (ticks() - first) * 1024 / static_cast<uint64_t>(end - begin));
}

// Several threads may measure at the same time; all use the same result. Not an initialised static:
// with -fno-threadsafe-statics another thread may see that it is initialised before it sees the
// value.
uint64_t speed() {
  static constinit std::atomic<uint64_t> measured{0};
  uint64_t known = measured.load(std::memory_order_relaxed);
  if (known != 0) return known;
  const uint64_t mine = ticks_in_1024_ns();
  return measured.compare_exchange_strong(known, mine, std::memory_order_relaxed) ? mine : known;
}

}  // namespace

uint64_t ticks_in(Nanoseconds time) {
  return static_cast<uint64_t>(time) * speed() / 1024;
}

Nanoseconds time_of(uint64_t ticks) {
  return static_cast<Nanoseconds>(ticks * 1024 / speed());
}

}  // namespace uiw::core
