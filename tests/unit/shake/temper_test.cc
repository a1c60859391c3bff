// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake/temper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/tuning.h"

namespace uiw::shake {
namespace {

namespace tuning = core::tuning;
using testing::ElementsAre;

TEST(Temper, AMoodLastsForSoManyCompletions) {
  for (uint64_t nth = 1; nth < 10 * tuning::kMoodCompletions; ++nth)
    if (nth % tuning::kMoodCompletions != 0) {
      EXPECT_EQ(mood_of({3}, 1, nth), mood_of({3}, 1, nth - 1));
    }
}

TEST(Temper, EveryMoodIsMetByTheFirstCompletionUnderSomeOfFiftySeeds) {
  std::set<Mood> met;
  for (uint64_t seed = 1; seed <= 50; ++seed) met.insert(mood_of({seed}, 3, 0));
  EXPECT_EQ(met.size(), 5u);
}

TEST(Temper, NothingIsHeldLongerThanTheLimitOfItsMood) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (uint64_t nth = 0; nth < 200; ++nth) {
      const core::Nanoseconds now = static_cast<core::Nanoseconds>(seed * 7919 + nth * 104729);
      const core::Nanoseconds hold = hold_of({seed}, 5, nth, now);
      EXPECT_GE(hold, 0);
      switch (mood_of({seed}, 5, nth)) {
        case Mood::kPrompt:
          EXPECT_EQ(hold, 0);
          break;
        case Mood::kShort:
          EXPECT_LT(hold, tuning::kShortHold);
          break;
        case Mood::kMiddle:
          EXPECT_LT(hold, tuning::kHold);
          break;
        case Mood::kLong:
          EXPECT_LT(hold, tuning::kLongestHold);
          break;
        case Mood::kTogether:
          EXPECT_LE(hold, tuning::kGatheringTime);
          EXPECT_EQ((now + hold) % tuning::kGatheringTime, 0);
          break;
      }
    }
  }
}

TEST(Temper, EveryWayOfArmingIsMetAndNoneTakesLong) {
  std::set<Arming> met;
  for (uint64_t nth = 0; nth < 50; ++nth) {
    const ArmingPlan plan = arming_of({1}, 1, nth);
    met.insert(plan.how);
    EXPECT_LT(plan.pause, tuning::kLongestArming);
    if (plan.how == Arming::kPlain) {
      EXPECT_EQ(plan.pause, 0);
    }
  }
  EXPECT_EQ(met.size(), 3u);
}

TEST(Temper, APollThatHasRoomGivesSome) {
  bool few = false, all = false;
  for (uint64_t given = 0; given < 100; ++given) {
    const PollPlan plan = poll_of({1}, 1, given);
    EXPECT_GE(plan.most, 1u);
    EXPECT_GE(plan.turn, 1u);
    EXPECT_LE(plan.turn, tuning::kTurn);
    few = few || plan.most <= tuning::kFewCompletions;
    all = all || plan.most > 1'000'000;
  }
  EXPECT_TRUE(few && all);
}

constexpr core::ShakeOptions without(core::Liberty liberty) {
  return {1, uint32_t{1} << static_cast<unsigned>(liberty)};
}

TEST(Temper, WhatIsLeftOutDoesNotHappen) {
  for (uint64_t nth = 0; nth < 200; ++nth) {
    EXPECT_EQ(hold_of(without(core::Liberty::kLate), 1, nth, 12345), 0);
    EXPECT_EQ(arming_of(without(core::Liberty::kArming), 1, nth).how, Arming::kPlain);
    EXPECT_GT(poll_of(without(core::Liberty::kBatches), 1, nth).most, 1'000'000u);
  }
}

std::vector<core::Nanoseconds> holds(uint64_t seed, uint64_t work_queue) {
  std::vector<core::Nanoseconds> list;
  for (uint64_t nth = 0; nth < 300; ++nth) list.push_back(hold_of({seed}, work_queue, nth, 12345));
  return list;
}

TEST(Temper, AnotherSeedOrWorkQueueIsHeldOtherwise) {
  EXPECT_EQ(holds(7, 1), holds(7, 1));
  EXPECT_NE(holds(7, 1), holds(8, 1));
  EXPECT_NE(holds(7, 1), holds(7, 2));
}

}  // namespace
}  // namespace uiw::shake
