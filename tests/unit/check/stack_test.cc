// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/stack.h"

#include <gtest/gtest.h>

namespace uiw::check {
namespace {

__attribute__((noinline)) Stack taken() {
  Stack stack;
  capture(stack);
  return stack;
}

TEST(Stacks, AreTheSameWhereTheirFramesAre) {
  Stack stacks[3];
  const volatile int twice = 2;  // so that the calls stay one place
  for (int i = 0; i < twice; ++i) stacks[i] = taken();
  stacks[2] = taken();
  EXPECT_EQ(stacks[0], stacks[1]);
  EXPECT_NE(stacks[0], stacks[2]);
  EXPECT_GT(stacks[0].calls().count, 1u);
  Backtrace shorter = stacks[0].calls();
  EXPECT_EQ(Stack(shorter), stacks[0]);
  --shorter.count;
  EXPECT_NE(Stack(shorter), stacks[0]);
}

TEST(Stacks, OfNoCallAndLostOnesHaveNoFrames) {
  EXPECT_EQ(Stack(Backtrace{}), Stack());
  EXPECT_FALSE(Stack().is_lost());
  EXPECT_TRUE(Stack::lost().is_lost());
  EXPECT_TRUE(Stack().calls().addresses().empty());
  EXPECT_TRUE(Stack::lost().calls().addresses().empty());
}

}  // namespace
}  // namespace uiw::check
