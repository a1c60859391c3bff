// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "progress/lease_policy.h"

#include <gtest/gtest.h>

#include <random>

namespace uiw::progress {
namespace {

constexpr uint64_t kSilence = 1000, kLately = 50, kStart = 1'000'000;

LeasePolicy::Verdict look(const LeasePolicy::Use& use, uint32_t polls_before = 0) {
  LeasePolicy policy(kSilence, kLately);
  policy.begin(polls_before);
  return policy.look(use);
}

TEST(LeasePolicy, SilenceEndsIt) {
  const auto at = [](uint64_t silent) {
    return look({.now = kStart + silent, .empty_poll_at = kStart});
  };
  EXPECT_EQ(at(kSilence - 1).end, LeaseEnd::kNot);
  EXPECT_EQ(at(kSilence - 1).look_in, 1u);
  EXPECT_EQ(at(kSilence).end, LeaseEnd::kOfAll);
}

TEST(LeasePolicy, PostsKeepThoseWhoNeedNoPolls) {
  const LeasePolicy::Use use{
      .now = kStart + kSilence, .empty_poll_at = kStart, .posted_at = kStart + kSilence - 10};
  EXPECT_EQ(look(use).end, LeaseEnd::kNot);
  EXPECT_EQ(look(use).look_in, kSilence - 10);
  LeasePolicy::Use receives = use;
  receives.needs_polls = true;
  EXPECT_EQ(look(receives).end, LeaseEnd::kOfPolls);
  EXPECT_EQ(look(receives).look_in, kSilence - 10);
}

TEST(LeasePolicy, PollsThatFindSomethingDoTheSame) {
  LeasePolicy::Use use{.now = kStart + kSilence, .empty_poll_at = kStart, .polls = 7};
  EXPECT_EQ(look(use, 6).end, LeaseEnd::kNot);
  EXPECT_EQ(look(use, 7).end, LeaseEnd::kOfAll);
  use.needs_polls = true;
  EXPECT_EQ(look(use, 6).end, LeaseEnd::kOfPolls);
}

TEST(LeasePolicy, EmptyPollsKeepAll) {
  const LeasePolicy::Use use{.now = kStart + 400, .empty_poll_at = kStart, .needs_polls = true};
  EXPECT_EQ(look(use).end, LeaseEnd::kNot);
  EXPECT_EQ(look(use).look_in, kSilence - 400);
}

TEST(LeasePolicy, WhatIsDeferredWasLeftWhenNobodyPolledPostedOrSends) {
  const LeasePolicy::Use use{
      .now = kStart + kLately, .empty_poll_at = kStart - 500, .posted_at = kStart};
  EXPECT_TRUE(look(use).left);
  LeasePolicy::Use now = use;
  now.posted_at = kStart + 1;
  EXPECT_FALSE(look(now).left) << "posts go on";
  now = use;
  now.sends = true;
  EXPECT_FALSE(look(now).left) << "a call of sendmsg() takes its time";
  now = use;
  now.polls = 1;
  EXPECT_FALSE(look(now).left) << "completions were found";
}

TEST(LeasePolicy, ClocksOfOtherProcessorsMayBeAhead) {
  const auto verdict = look({.now = kStart, .empty_poll_at = kStart + 7, .posted_at = kStart + 9});
  EXPECT_EQ(verdict.end, LeaseEnd::kNot);
  EXPECT_EQ(verdict.look_in, kSilence);
}

// --- when the engine looks ---

constexpr uint64_t kSoon = 100, kLate = 1000;

TEST(LookPlan, DeferringBringsALateLookForward) {
  LookPlan plan(kSoon, kLate);
  plan.set(kStart, kLate);
  EXPECT_TRUE(plan.deferred(kStart));
  plan.set(kStart, kSoon);
  EXPECT_FALSE(plan.deferred(kStart)) << "it is soon enough already";
  EXPECT_FALSE(plan.deferred(kStart + 10));
}

TEST(LookPlan, PollsPutItOffInTheSecondHalf) {
  LookPlan plan(kSoon, kLate);
  plan.set(kStart, kLate);
  EXPECT_EQ(plan.polled(kStart + kLate / 2 - 1), 0u);
  EXPECT_EQ(plan.polled(kStart + kLate / 2), kLate);
}

// A poller that put it off would have to bring it forward with the next deferral.
TEST(LookPlan, WhileThingsAreDeferredTheEngineLooksSoonAndPollsLeaveThatAsItIs) {
  LookPlan plan(kSoon, kLate);
  plan.set(kStart, kLate);
  uint64_t now = kStart;
  EXPECT_TRUE(plan.deferred(now));
  plan.set(now, kSoon);
  for (int look = 0; look < 10; ++look) {
    EXPECT_EQ(plan.polled(now + kSoon - 1), 0u) << look;
    now += kSoon;
    EXPECT_EQ(plan.looked(), kSoon) << look << ": something was deferred since the last one";
    plan.set(now, kSoon);
    EXPECT_EQ(plan.polled(now), 0u) << look;
    EXPECT_FALSE(plan.deferred(now)) << look << ": it is soon enough already";
  }
  EXPECT_EQ(plan.looked(), kSoon);
  plan.set(now, kSoon);
  EXPECT_EQ(plan.looked(), kLate) << "nothing was deferred since";
  plan.set(now, kLate);
  EXPECT_EQ(plan.polled(now + kLate / 2), kLate);
}

// Whatever is deferred is sent by a poll, or the engine looks in time: at no later than kSoon.
TEST(LookPlan, NothingWaitsLonger) {
  std::mt19937 random(1);
  LookPlan plan(kSoon, kLate);
  uint64_t now = kStart, look_at = kStart + kLate;
  plan.set(now, kLate);
  uint64_t waits_since = 0;  // 0: nothing waits
  const auto told = [&](uint64_t in) {
    plan.set(now, in);
    look_at = now + in;
  };
  uint64_t told_by_polls = 0, brought_forward = 0, looks = 0;
  for (int step = 0; step < 1'000'000; ++step) {
    now += random() % 60;
    if (now >= look_at) {
      if (waits_since > 0) ASSERT_LE(look_at - waits_since, kSoon);
      ++looks;
      waits_since = 0;
      told(plan.looked());
    }
    const int phase = step / 1000 % 4;
    const bool quiet = phase == 1;  // nothing is deferred
    const bool left = phase == 2;   // nobody polls
    if (!quiet && random() % 3 == 0) {
      if (waits_since == 0) waits_since = now;
      if (plan.deferred(now)) {
        ++brought_forward;
        told(kSoon);
      }
    } else if (!left) {
      waits_since = 0;
      if (const uint64_t in = plan.polled(now)) {
        ++told_by_polls;
        told(in);
      }
    }
  }
  EXPECT_GT(told_by_polls, 1000u);
  EXPECT_GT(brought_forward, 200u);
  EXPECT_GT(looks, 1000u);
}

}  // namespace
}  // namespace uiw::progress
