// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/clock.h"

#include <gtest/gtest.h>
#include <time.h>

namespace uiw::core {
namespace {

Nanoseconds reference() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Nanoseconds>(t.tv_sec) * 1000000000 + t.tv_nsec;
}

TEST(Clock, IsTheMonotonicClockInNanoseconds) {
  Nanoseconds before = reference();
  Nanoseconds ours = now();
  Nanoseconds after = reference();
  EXPECT_LE(before, ours);
  EXPECT_LE(ours, after);
  EXPECT_EQ(kSecond, 1000 * kMillisecond);
}

// The machine may hold this thread up between two readings, which only makes more time pass on
// both.
TEST(Clock, TicksCountTheSameTime) {
  const uint64_t second = ticks_in(kSecond);
  EXPECT_GT(second, 1'000'000u);
  EXPECT_NEAR(static_cast<double>(ticks_in(kMillisecond)), static_cast<double>(second) / 1000,
              static_cast<double>(second) / 1e5);
  const Nanoseconds begin_outer = now();
  const uint64_t first = ticks();
  const Nanoseconds begin_inner = now();
  while (now() - begin_inner < 20 * kMillisecond) {
  }
  const Nanoseconds end_inner = now();
  const uint64_t passed = ticks() - first;
  const Nanoseconds end_outer = now();
  // How fast they run was measured to a few thousandths, unless this was held up then.
  EXPECT_GE(passed, ticks_in(end_inner - begin_inner) * 8 / 10);
  EXPECT_LE(passed, ticks_in(end_outer - begin_outer) * 12 / 10);
}

}  // namespace
}  // namespace uiw::core
