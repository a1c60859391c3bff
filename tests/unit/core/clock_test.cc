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

}  // namespace
}  // namespace uiw::core
