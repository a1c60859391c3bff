// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "progress/grant_policy.h"

#include <gtest/gtest.h>

namespace uiw::progress {
namespace {

using core::tuning::kArrivals;
using core::tuning::kArrivalsPerForeignLook;
using core::tuning::kForeignAnswer;
using core::tuning::kFullSocketsWithin;
using core::tuning::kPollsOfBusyPoller;
using core::tuning::kSmallArrival;
using core::tuning::kSoon;

// Arrivals of small messages, one each, far apart unless something else is said.
struct Arriving {
  Grant arrive(core::Nanoseconds after = core::kMillisecond, size_t bytes = 64,
               bool completes = true, bool mid_message = false) {
    now += after;
    if (completes) ++completed;
    return policy.on_arrival({.at = now,
                              .bytes = bytes,
                              .completed = completed,
                              .mid_message = mid_message,
                              .send_queue = send,
                              .receive_queue = receive});
  }
  static void poll(QueueUse& queue, uint32_t times) {
    queue.empty_polls += times;
    queue.polls += times;
  }
  // Arrivals, each with `polls` empty polls of the receive queue before it: how many until a grant.
  uint32_t arrivals_until_grant(uint32_t polls, core::Nanoseconds after = core::kMillisecond) {
    for (uint32_t i = 1; i <= 100; ++i) {
      poll(receive, polls);
      if (arrive(after) == Grant::kToReceiveQueue) return i;
    }
    return 0;
  }

  GrantPolicy policy;
  QueueUse send, receive;
  core::Nanoseconds now = 0;
  uint32_t completed = 0;
};

TEST(GrantPolicy, WhoBusyPollsBetweenArrivalsIsGranted) {
  Arriving a;
  EXPECT_EQ(a.arrivals_until_grant(kPollsOfBusyPoller), kArrivals);
}

TEST(GrantPolicy, WhoPollsOnceOrTwiceAfterAnEventIsNot) {
  Arriving a;
  EXPECT_EQ(a.arrivals_until_grant(kPollsOfBusyPoller - 1), 0u);
}

TEST(GrantPolicy, OnePollCountsWhereMessagesFollowEachOtherSoon) {
  Arriving a;
  a.arrive();
  EXPECT_EQ(a.arrivals_until_grant(1, kSoon - 1), kArrivals);
  Arriving late;
  late.arrive();
  EXPECT_EQ(late.arrivals_until_grant(1, kSoon), 0u);
}

TEST(GrantPolicy, OnePollDoesNotCountBeforeWhatIsLargeOrCompletesNothing) {
  Arriving a;
  a.arrive();
  for (uint32_t i = 0; i < 3 * kArrivals; ++i) {
    Arriving::poll(a.receive, 1);
    EXPECT_NE(a.arrive(kSoon - 1, kSmallArrival + 1), Grant::kToReceiveQueue);
    Arriving::poll(a.receive, 1);
    EXPECT_NE(a.arrive(kSoon - 1, 64, false), Grant::kToReceiveQueue);
  }
}

TEST(GrantPolicy, TheQueueThatIsPolledGetsIt) {
  Arriving a;
  for (uint32_t i = 1; i < kArrivals; ++i) {
    Arriving::poll(a.send, kPollsOfBusyPoller);
    EXPECT_EQ(a.arrive(), Grant::kNone);
  }
  Arriving::poll(a.send, kPollsOfBusyPoller);
  EXPECT_EQ(a.arrive(), Grant::kToSendQueue);
}

TEST(GrantPolicy, ArmingEndsTheStreak) {
  Arriving a;
  for (uint32_t i = 0; i < 10 * kArrivals; ++i) {
    Arriving::poll(a.receive, kPollsOfBusyPoller);
    if (i % kArrivals == kArrivals - 1) ++a.receive.arms;
    EXPECT_NE(a.arrive(), Grant::kToReceiveQueue) << i;
  }
}

TEST(GrantPolicy, AnArrivalWithoutPollsEndsTheStreakUnlessItContinuesAMessage) {
  Arriving a;
  for (uint32_t i = 1; i < kArrivals; ++i) {
    Arriving::poll(a.receive, kPollsOfBusyPoller);
    a.arrive(core::kMillisecond, 64, false, true);
    a.arrive(core::kMillisecond, 64, true, false);  // the rest of the same message
  }
  Arriving::poll(a.receive, kPollsOfBusyPoller);
  EXPECT_EQ(a.arrive(), Grant::kToReceiveQueue);
  a.arrive();
  Arriving::poll(a.receive, kPollsOfBusyPoller);
  EXPECT_NE(a.arrive(), Grant::kToReceiveQueue);
}

TEST(GrantPolicy, WhatWasRevokedHasToBeEarnedAgain) {
  Arriving a;
  a.arrivals_until_grant(kPollsOfBusyPoller);
  a.policy.on_revoked();
  EXPECT_EQ(a.arrivals_until_grant(kPollsOfBusyPoller), kArrivals);
}

TEST(GrantPolicy, CountersWrap) {
  Arriving a;
  a.receive = {.empty_polls = UINT32_MAX - 10, .polls = UINT32_MAX - 10};
  a.arrive();
  a.policy.on_revoked();
  EXPECT_EQ(a.arrivals_until_grant(kPollsOfBusyPoller), kArrivals);
}

// --- queues of others ---

TEST(GrantPolicy, ForeignQueuesAreLookedAtNowAndThen) {
  Arriving a;
  uint32_t asked = 0;
  for (uint32_t i = 0; i < 10 * kArrivalsPerForeignLook; ++i)
    if (a.arrive() == Grant::kAskForeign) ++asked;
  EXPECT_EQ(asked, 10u);
}

TEST(GrantPolicy, TheSameForeignQueueHasToBeBusyAgainAndAgain) {
  GrantPolicy policy;
  QueueUse use;
  const int one = 0, other = 0;
  const auto look = [&](const void* queue) {
    Arriving::poll(use, kPollsOfBusyPoller);
    return policy.foreign_is_busy(queue, use, 0);
  };
  look(&one);  // until now another one was the last
  for (uint32_t i = 1; i < kArrivals; ++i) EXPECT_FALSE(look(&one));
  EXPECT_TRUE(look(&one));
  EXPECT_FALSE(look(&other));
  EXPECT_FALSE(look(&one));
}

TEST(GrantPolicy, LargeAnswersAreTheEngines) {
  GrantPolicy policy;
  QueueUse use;
  const int queue = 0;
  uint64_t sent = 0;
  for (uint32_t i = 0; i < 10 * kArrivals; ++i) {
    Arriving::poll(use, kPollsOfBusyPoller);
    sent += kForeignAnswer * kArrivalsPerForeignLook + 1;
    EXPECT_FALSE(policy.foreign_is_busy(&queue, use, sent));
  }
}

// --- sending ---

TEST(GrantPolicy, FullSocketsOfABusyPollerCountTogetherForAWhile) {
  GrantPolicy policy;
  QueueUse use;
  core::Nanoseconds now = kFullSocketsWithin + 1;
  const auto full = [&](uint32_t polls, core::Nanoseconds after) {
    now += after;
    Arriving::poll(use, polls);
    return policy.on_full_socket(now, use);
  };
  for (uint32_t i = 1; i < kArrivals; ++i) {
    EXPECT_FALSE(full(kPollsOfBusyPoller, 1000));
    EXPECT_FALSE(full(0, 1000));  // no poll in between: no harm
  }
  EXPECT_TRUE(full(kPollsOfBusyPoller, 1000));
  for (uint32_t i = 0; i < 4 * kArrivals; ++i)
    EXPECT_FALSE(full(kPollsOfBusyPoller, kFullSocketsWithin + 1)) << "too far apart";
}

}  // namespace
}  // namespace uiw::progress
