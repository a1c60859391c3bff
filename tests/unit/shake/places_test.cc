// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake/places.h"

#include <gtest/gtest.h>

namespace uiw::shake {
namespace {

Places places_of(uint32_t depth) {
  Places places;
  places.set_depth(depth);
  return places;
}

TEST(Places, AreFreeWhenTheCompletionWasGiven) {
  Places places = places_of(2);
  EXPECT_EQ(places.room(0), 2u);
  places.post(true);
  places.post(true);
  EXPECT_EQ(places.room(0), 0u);
  EXPECT_EQ(places.room(1), 1u);
  EXPECT_EQ(places.room(2), 2u);
}

TEST(Places, ACompletionFreesAllBeforeItAndNoneBehind) {
  Places places = places_of(4);
  for (const bool completes : {false, false, true, false}) places.post(completes);
  EXPECT_EQ(places.room(0), 0u);
  EXPECT_EQ(places.room(1), 3u);
}

TEST(Places, ACompletionMayBeGivenBeforeItsPostIsKnown) {
  Places places = places_of(1);
  EXPECT_EQ(places.room(1), 1u);
  places.post(true);
  EXPECT_EQ(places.room(1), 1u);
}

TEST(Places, WhatIsTakenBackLeavesNothing) {
  Places places = places_of(3);
  places.post(true);
  const uint64_t before = places.posted();
  places.post(true);
  places.post(true);
  places.take_back(before);
  EXPECT_EQ(places.room(0), 2u);
  EXPECT_EQ(places.room(1), 3u);
}

TEST(Places, BeginAnew) {
  Places places = places_of(2);
  places.post(true);
  places.post(true);
  places.clear(1);
  EXPECT_EQ(places.room(1), 2u);
  places.post(true);
  EXPECT_EQ(places.room(1), 1u);
  EXPECT_EQ(places.room(2), 2u);
}

}  // namespace
}  // namespace uiw::shake
