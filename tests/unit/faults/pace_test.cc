// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/pace.h"

#include <gtest/gtest.h>

namespace uiw::faults {
namespace {

TEST(FaultPace, WhatIsHandedOverTogetherLeavesBehindEachOther) {
  Pace pace;
  // 125 bytes take a microsecond at a gigabit a second.
  EXPECT_EQ(pace.departure(1000, 125, 1000000000), 2000);
  EXPECT_EQ(pace.departure(1000, 250, 1000000000), 4000);
  EXPECT_EQ(pace.departure(10000, 125, 1000000000), 11000);  // the way was free meanwhile
}

TEST(FaultPace, WhatDoesNotLeaveAfterAllTakesNoTime) {
  Pace pace;
  EXPECT_EQ(pace.departure(1000, 125, 1000000000), 2000);
  EXPECT_EQ(pace.departure(1000, 250, 1000000000), 4000);
  pace.take_back(250, 1000000000);
  EXPECT_EQ(pace.departure(1000, 125, 1000000000), 3000);
  pace.take_back(1u << 30, 0);
  EXPECT_EQ(pace.departure(1000, 125, 1000000000), 4000);
}

TEST(FaultPace, WithoutARateItLeavesAtOnce) {
  Pace pace;
  EXPECT_EQ(pace.departure(7, 1u << 30, 0), 7);
}

}  // namespace
}  // namespace uiw::faults
