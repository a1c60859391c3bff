// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/life.h"

#include <gtest/gtest.h>

namespace uiw::check {
namespace {

TEST(Life, KnowsWhoIsWithinWhenItEnds) {
  Life life;
  EXPECT_TRUE(life.enter());
  EXPECT_TRUE(life.enter());
  life.leave();
  life.end();
  EXPECT_EQ(life.within(), 1u);
  EXPECT_FALSE(life.enter());
  EXPECT_EQ(life.within(), 1u);
  life.leave();
  EXPECT_EQ(life.within(), 0u);
}

TEST(Life, GoesOnWhenItsEndFailed) {
  Life life;
  life.end();
  EXPECT_FALSE(life.enter());
  life.go_on();
  EXPECT_TRUE(life.enter());
  EXPECT_EQ(life.within(), 1u);
}

}  // namespace
}  // namespace uiw::check
