// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/placement.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace uiw::engine {
namespace {

using Action = Placement::Action;

// The equal turns of one window.
void fill_window(Placement& placement, uint64_t octets_per_turn, uint64_t sent_per_turn = 0) {
  for (uint32_t i = 1; i < core::tuning::kPlacementWindow; ++i)
    EXPECT_FALSE(placement.turn(octets_per_turn, sent_per_turn));
  EXPECT_TRUE(placement.turn(octets_per_turn, sent_per_turn));
}
// Then the verdict, on a thread that runs elsewhere.
Placement::Decision window(Placement& placement, uint64_t octets_per_turn, uint32_t sleeps,
                           int packets_cpu, uint64_t sent_per_turn = 0) {
  fill_window(placement, octets_per_turn, sent_per_turn);
  return placement.judge({.sleeps = sleeps, .packets_cpu = packets_cpu});
}
Placement::Decision ping_pong(Placement& placement, int cpu) {
  return window(placement, 64, core::tuning::kPlacementWindow, cpu);
}
Placement::Decision stream(Placement& placement, int cpu) {
  return window(placement, 200 << 10, core::tuning::kPlacementWindow, cpu);
}

TEST(Placement, FollowsLatencyTrafficAfterOneWindow) {
  Placement placement;
  const auto decision = ping_pong(placement, 3);
  EXPECT_EQ(decision.action, Action::kFollow);
  EXPECT_EQ(decision.cpu, 3);
  EXPECT_EQ(placement.place(), (Placement::Decision{Action::kFollow, 3}));
}

TEST(Placement, StaysWhereThePacketsAre) {
  Placement placement;
  ping_pong(placement, 3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ping_pong(placement, 3).action, Action::kStay);
}

TEST(Placement, LeavesAPlaceOnlyWhenWindowsAgree) {
  Placement placement;
  ping_pong(placement, 3);
  EXPECT_EQ(ping_pong(placement, 5).action, Action::kStay);
  const auto decision = ping_pong(placement, 5);
  EXPECT_EQ(decision.action, Action::kFollow);
  EXPECT_EQ(decision.cpu, 5);
}

TEST(Placement, TwoConnectionsDoNotThrowItBackAndForth) {
  Placement placement;
  ping_pong(placement, 0);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ping_pong(placement, i % 2).action, Action::kStay);
  }
  EXPECT_EQ(placement.place(), (Placement::Decision{Action::kFollow, 0}));
}

TEST(Placement, KeepsAwayFromLargePieces) {
  Placement placement;
  ping_pong(placement, 3);
  EXPECT_EQ(stream(placement, 3).action, Action::kStay);  // one window may be chance
  const auto decision = stream(placement, 3);
  EXPECT_EQ(decision.action, Action::kKeepAway);
  EXPECT_EQ(decision.cpu, 3);
  EXPECT_EQ(stream(placement, 3).action, Action::kStay);
}

// Reads of its memory: small requests, large answers.
TEST(Placement, WhatItAnswersCountsForStreamsOnly) {
  Placement placement;
  EXPECT_EQ(window(placement, 50, core::tuning::kPlacementWindow, 3, 64 << 10),
            (Placement::Decision{Action::kFollow, 3}));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(window(placement, 50, 8, 3, 64 << 10).action, Action::kStay);
  EXPECT_EQ(window(placement, 50, 4, 3, 64 << 10).action, Action::kStay);
  EXPECT_EQ(window(placement, 50, 4, 3, 64 << 10), (Placement::Decision{Action::kKeepAway, 3}));
  Placement another;
  window(another, 50, core::tuning::kPlacementWindow, 3, 200 << 10);
  EXPECT_EQ(window(another, 50, core::tuning::kPlacementWindow, 3, 200 << 10),
            (Placement::Decision{Action::kKeepAway, 3}));
}

TEST(Placement, KeepsAwayWhenItHardlySleeps) {
  Placement placement;
  ping_pong(placement, 3);
  EXPECT_EQ(window(placement, 20 << 10, 2, 3).action, Action::kStay);
  EXPECT_EQ(window(placement, 20 << 10, 2, 3).action, Action::kKeepAway);
}

// The scheduler may have moved the other end to where it was sent.
TEST(Placement, KeepsAwayFromAnotherCpuOnlyAfterARest) {
  Placement placement;
  stream(placement, 1);
  EXPECT_EQ(stream(placement, 1), (Placement::Decision{Action::kKeepAway, 1}));
  for (uint32_t i = 1; i < core::tuning::kRestWindows; ++i) {
    EXPECT_EQ(stream(placement, 0).action, Action::kStay);
  }
  EXPECT_EQ(stream(placement, 0), (Placement::Decision{Action::kKeepAway, 0}));
}

// A stream whose packets came to `packets_cpu`, to a thread on `own_cpu`.
Placement::Decision stream_at(Placement& placement, int packets_cpu, int own_cpu, bool waited) {
  fill_window(placement, 200 << 10);
  const Placement::Window window{.packets_cpu = packets_cpu, .own_cpu = own_cpu, .waited = waited};
  EXPECT_EQ(placement.together(window), packets_cpu == own_cpu);
  return placement.judge(window);
}

// What our acknowledgements let the peer send comes from our own CPU, though the peer is not there.
TEST(Placement, PacketsAtItsOwnCpuProveNothing) {
  Placement placement;
  stream_at(placement, 1, 0, false);
  ASSERT_EQ(stream_at(placement, 1, 0, false), (Placement::Decision{Action::kKeepAway, 1}));
  for (uint32_t i = 0; i < 10 * core::tuning::kOwnCpuWindows; ++i) {
    const int packets_cpu = i % core::tuning::kOwnCpuWindows == 0 ? 1 : 0;
    EXPECT_EQ(stream_at(placement, packets_cpu, 0, false).action, Action::kStay);
  }
}

TEST(Placement, LeavesTheCpuThatItHasToWaitFor) {
  Placement placement;
  ping_pong(placement, 3);
  EXPECT_EQ(stream_at(placement, 3, 3, true).action, Action::kStay);  // one window may be chance
  EXPECT_EQ(stream_at(placement, 3, 3, true), (Placement::Decision{Action::kKeepAway, 3}));
  // The sender has come after it.
  for (uint32_t i = 1; i < core::tuning::kRestWindows; ++i)
    EXPECT_EQ(stream_at(placement, 0, 0, true).action, Action::kStay);
  EXPECT_EQ(stream_at(placement, 0, 0, true), (Placement::Decision{Action::kKeepAway, 0}));
}

// Where a woken thread takes the CPU from the sender at once it never waits.
TEST(Placement, LeavesTheCpuWhereAllPacketsAre) {
  Placement placement;
  ping_pong(placement, 3);
  for (uint32_t i = 0; i < core::tuning::kOwnCpuWindows; ++i)
    EXPECT_EQ(stream_at(placement, 3, 3, false).action, Action::kStay);
  EXPECT_EQ(stream_at(placement, 3, 3, false), (Placement::Decision{Action::kKeepAway, 3}));
}

TEST(Placement, LatencyTrafficFollowsToItsOwnCpu) {
  Placement placement;
  fill_window(placement, 64);
  const Placement::Window here{
      .sleeps = core::tuning::kPlacementWindow, .packets_cpu = 2, .own_cpu = 2};
  EXPECT_FALSE(placement.together(here));
  EXPECT_EQ(placement.judge(here), (Placement::Decision{Action::kFollow, 2}));
}

// A ping-pong with a peer on the same CPU that always runs first looks like this.
TEST(Placement, SmallPiecesWithoutSleepAreNoStream) {
  Placement placement;
  ping_pong(placement, 3);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(window(placement, 64, 0, 3).action, Action::kStay);
  EXPECT_EQ(placement.place(), (Placement::Decision{Action::kFollow, 3}));
}

TEST(Placement, StreamWindowsApartDoNotAddUp) {
  Placement placement;
  ping_pong(placement, 3);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(stream(placement, 3).action, Action::kStay);
    EXPECT_EQ(ping_pong(placement, 3).action, Action::kStay);
  }
}

TEST(Placement, BetweenBothNothingChanges) {
  Placement moved, free;
  ping_pong(moved, 3);
  for (int i = 0; i < 10; ++i) {
    // Pieces too large to follow and too small to let go; then too few sleeps for one and too
    // many for the other.
    EXPECT_EQ(window(moved, 64 << 10, core::tuning::kPlacementWindow, 7).action, Action::kStay);
    EXPECT_EQ(window(free, 64 << 10, core::tuning::kPlacementWindow, 7).action, Action::kStay);
    EXPECT_EQ(window(moved, 20 << 10, 8, 7).action, Action::kStay);
    EXPECT_EQ(window(free, 64, 8, 7).action, Action::kStay);
  }
  EXPECT_EQ(moved.place(), (Placement::Decision{Action::kFollow, 3}));
  EXPECT_EQ(free.place().action, Action::kStay);
}

TEST(Placement, FollowsAPingPongOfLargeMessages) {
  Placement placement;
  const uint32_t sleeps = core::tuning::kPlacementWindow - core::tuning::kFewWakes;
  fill_window(placement, 64 << 10);
  EXPECT_TRUE(placement.unclear({.sleeps = sleeps}));
  EXPECT_FALSE(placement.unclear({.sleeps = sleeps - 1}));  // it hardly waits for anybody
  EXPECT_EQ(placement.judge({.sleeps = sleeps, .packets_cpu = 3, .ping_pong = true}),
            (Placement::Decision{Action::kFollow, 3}));
  // Where it is clear nobody need ask, and what is said does not matter.
  const Placement::Window asleep{.sleeps = core::tuning::kPlacementWindow, .packets_cpu = 3};
  fill_window(placement, 64);
  EXPECT_FALSE(placement.unclear(asleep));
  placement.judge(asleep);
  for (const auto& [received, sent] : {std::pair{200, 0}, std::pair{64, 100}}) {
    for (int i = 0; i < 2; ++i) {
      fill_window(placement, static_cast<uint64_t>(received) << 10,
                  static_cast<uint64_t>(sent) << 10);
      EXPECT_FALSE(placement.unclear(asleep));
      placement.judge(
          {.sleeps = core::tuning::kPlacementWindow, .packets_cpu = 3, .ping_pong = true});
    }
    EXPECT_EQ(placement.place(), (Placement::Decision{Action::kKeepAway, 3}));
  }
}

TEST(Placement, FollowsAgainAfterAStream) {
  Placement placement;
  stream(placement, 3);
  stream(placement, 3);
  EXPECT_EQ(ping_pong(placement, 3).action, Action::kStay);
  EXPECT_EQ(ping_pong(placement, 3), (Placement::Decision{Action::kFollow, 3}));
}

TEST(Placement, DoesNotAskAgainForACpuItMayNotUse) {
  Placement placement;
  ASSERT_EQ(ping_pong(placement, 3).action, Action::kFollow);
  placement.follow_failed(3);
  EXPECT_NE(placement.place().action, Action::kFollow);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ping_pong(placement, 3).action, Action::kStay);
  EXPECT_EQ(ping_pong(placement, 4).action, Action::kFollow);
}

TEST(Placement, AnUnknownCpuMovesNothing) {
  Placement placement;
  EXPECT_EQ(ping_pong(placement, -1).action, Action::kStay);
  ping_pong(placement, 3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ping_pong(placement, -1).action, Action::kStay);
  EXPECT_EQ(placement.place(), (Placement::Decision{Action::kFollow, 3}));
}

// Whatever comes, each decision changes something, and is what place() says.
TEST(Placement, RandomTrafficChangesPlacesOneAfterTheOther) {
  std::mt19937 random(1);
  Placement placement;
  Placement::Decision place;
  for (int i = 0; i < 20000; ++i) {
    const auto decision = window(placement, random() % (256 << 10), random() % 20,
                                 static_cast<int>(random() % 4) - 1);
    if (decision.action != Action::kStay) {
      ASSERT_GE(decision.cpu, 0);
      ASSERT_FALSE(decision == place);
      place = decision;
    }
    ASSERT_EQ(placement.place(), place);
  }
}

}  // namespace
}  // namespace uiw::engine
