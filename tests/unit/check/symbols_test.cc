// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/symbols.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace uiw::check {
namespace {

// As a function of the checked table, whose own frame is left out.
__attribute__((noinline)) int take(Stack& stack) {
  capture(stack);
  return static_cast<int>(stack.count);
}

int line_of_call = 0;

__attribute__((noinline)) int caller(Stack& stack) {
  line_of_call = __LINE__ + 1;
  const int frames = take(stack);
  return frames + 1;
}

TEST(Symbols, FunctionFileAndLineOfACall) {
  Stack stack;
  ASSERT_GT(caller(stack), 2);
  const std::vector<Frame> frames = Symbols().frames_of(stack);
  ASSERT_GE(frames.size(), 2u);
  EXPECT_NE(frames[0].function.find("caller(uiw::check::Stack&)"), std::string::npos)
      << frames[0].function;
  EXPECT_TRUE(std::string_view(frames[0].file).ends_with("symbols_test.cc")) << frames[0].file;
  EXPECT_EQ(frames[0].line, line_of_call);
  EXPECT_FALSE(frames[0].module.empty());
}

TEST(Symbols, WhatIsNoCodeIsShownAsAnAddress) {
  Stack stack;
  stack.frames[0] = 0x11;
  stack.count = 1;
  const std::vector<Frame> frames = Symbols().frames_of(stack);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].offset, 0x10u);
  EXPECT_TRUE(frames[0].module.empty());
}

TEST(Stacks, AreTheSameWhereTheirFramesAre) {
  Stack one, other;
  caller(one);
  caller(other);  // from the next line
  EXPECT_FALSE(one == other);
  Stack copy = one;
  EXPECT_TRUE(copy == one);
  --copy.count;
  EXPECT_FALSE(copy == one);
}

}  // namespace
}  // namespace uiw::check
