// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "progress/deferral.h"

#include <gtest/gtest.h>

namespace uiw::progress {
namespace {

namespace tuning = core::tuning;

// README, Limits: nothing is held back longer.
static_assert(tuning::kMostDeferred <= 100 * core::kMicrosecond);

constexpr uint64_t kGap = 1000, kPause = kGap * Burst::kGapsOfPause;  // ticks

TEST(Burst, BeginsWithTheNinthOfPostsThatFollowEachOther) {
  Burst burst;
  uint64_t now = 1'000'000;
  for (uint32_t i = 0; i < tuning::kBurst; ++i) {
    EXPECT_FALSE(burst.posted(now, kGap)) << i;
    burst.ended(now += 5 * kGap);  // however long each takes
    now += kGap - 1;
  }
  for (int i = 0; i < 100; ++i, now += kGap - 1) EXPECT_TRUE(burst.posted(now, kGap));
}

TEST(Burst, APauseEndsIt) {
  Burst burst;
  uint64_t now = 1'000'000;
  for (int i = 0; i < 20; ++i) burst.posted(now += kGap - 1, kGap);
  EXPECT_FALSE(burst.posted(now += kGap, kGap));
  for (uint32_t i = 1; i < tuning::kBurst; ++i) EXPECT_FALSE(burst.posted(now += 1, kGap));
  EXPECT_TRUE(burst.posted(now += 1, kGap));
}

// A program that waits for the completions of what it has posted.
TEST(Burst, GoesOnAfterAPauseWhenItWasLong) {
  Burst burst;
  uint64_t now = 1'000'000;
  const auto post = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) burst.posted(now += 1, kGap);
  };
  post(tuning::kLongBurst + 1);
  for (int part = 0; part < 10; ++part) {
    EXPECT_TRUE(burst.posted(now += kPause - 1, kGap)) << part;
    post(tuning::kLongBurst - tuning::kBurst);
  }
  EXPECT_TRUE(burst.posted(now += kPause - 1, kGap));
  EXPECT_FALSE(burst.posted(now += kPause - 1, kGap)) << "one pause for each long part";
  post(tuning::kLongBurst);
  EXPECT_FALSE(burst.posted(now += kPause, kGap)) << "longer than a pause";
}

TEST(Burst, APauseEndsOneThatWasNotLong) {
  Burst burst;
  uint64_t now = 1'000'000;
  for (uint32_t i = 0; i < tuning::kLongBurst; ++i) burst.posted(now += 1, kGap);
  EXPECT_FALSE(burst.posted(now += kPause - 1, kGap));
}

// How many of the next posts defer nothing.
uint32_t passes(Backoff& backoff) {
  uint32_t count = 0;
  while (backoff.passes()) ++count;
  return count;
}

TEST(Backoff, NothingPassesUntilSomethingWasLeft) {
  Backoff backoff;
  EXPECT_EQ(passes(backoff), 0u);
  backoff.judge(false);
  EXPECT_EQ(passes(backoff), 0u);
}

TEST(Backoff, TwiceAsManyPassEachTimeUpToALimit) {
  Backoff backoff;
  for (uint32_t wanted = tuning::kFirstBackoff; wanted <= tuning::kMostBackoff; wanted *= 2) {
    backoff.judge(true);
    EXPECT_EQ(passes(backoff), wanted);
  }
  backoff.judge(true);
  EXPECT_EQ(passes(backoff), tuning::kMostBackoff);
}

TEST(Backoff, HalfAsManyWithEachThatWentWell) {
  Backoff backoff;
  for (int i = 0; i < 4; ++i) backoff.judge(true);
  passes(backoff);
  for (int i = 0; i < 3; ++i) backoff.judge(false);
  EXPECT_EQ(passes(backoff), 0u) << "what went well delays nothing";
  backoff.judge(true);
  EXPECT_EQ(passes(backoff), 2 * tuning::kFirstBackoff);
  for (int i = 0; i < 20; ++i) backoff.judge(false);
  backoff.judge(true);
  EXPECT_EQ(passes(backoff), tuning::kFirstBackoff);
}

TEST(DeferredPosts, WaitUntilThereAreEnough) {
  DeferredPosts posts;
  for (uint32_t i = 1; i < tuning::kEnoughRequests; ++i) EXPECT_TRUE(posts.add(1, 64, 1000));
  EXPECT_EQ(posts.waits_since(), 1000u);
  EXPECT_FALSE(posts.add(1, 64, 1000));
  EXPECT_TRUE(posts.take());
  EXPECT_FALSE(posts.take()) << "only one is to send";
  EXPECT_TRUE(posts.add(tuning::kEnoughRequests - 1, 64, 1000)) << "it counts anew";
}

TEST(DeferredPosts, OrAreLargeEnough) {
  DeferredPosts posts;
  EXPECT_TRUE(posts.add(1, tuning::kEnoughBytes - 1, 1000));
  EXPECT_FALSE(posts.add(1, 1, 1000));
  DeferredPosts large;
  EXPECT_FALSE(large.add(1, uint64_t{1} << 32, 1000));
  EXPECT_EQ(large.waits_since(), UINT64_MAX);
}

TEST(DeferredPosts, WaitSinceTheFirstOfThem) {
  DeferredPosts posts;
  EXPECT_FALSE(posts.has_waited(5000, 0));
  posts.add(1, 64, 1000);
  posts.add(1, 64, 1090);
  EXPECT_FALSE(posts.has_waited(1099, 100));
  EXPECT_TRUE(posts.has_waited(1100, 100));
  EXPECT_FALSE(posts.has_waited(999, 100)) << "another processor's ticks are ahead";
  posts.take();
  EXPECT_FALSE(posts.has_waited(1100, 100));
  posts.add(1, 64, 2000);
  EXPECT_FALSE(posts.has_waited(2099, 100));
}

}  // namespace
}  // namespace uiw::progress
