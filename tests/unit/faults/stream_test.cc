// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace uiw::faults {
namespace {

using testing::ElementsAre;

Rules rules_of(const char* text) {
  Rules rules;
  EXPECT_EQ(parse(text, rules), "");
  return rules;
}

struct Injected {
  uint64_t number;
  int line;
  core::Nanoseconds delay;
  bool operator==(const Injected&) const = default;
};

// Of the first `count` events of one kind.
std::vector<Injected> sequence(const Rules& rules, Stream stream, Event event, int count) {
  std::vector<Injected> met;
  for (int i = 0; i < count; ++i)
    if (const auto hit = stream.next(rules, event))
      met.push_back({hit->number, hit->rule->line, hit->delay});
  return met;
}

std::vector<std::pair<uint64_t, int>> lines(const Rules& rules, Event event, int count) {
  std::vector<std::pair<uint64_t, int>> met;
  for (const Injected& each : sequence(rules, {Scope::kQueuePair, 1}, event, count))
    met.emplace_back(each.number, each.line);
  return met;
}

TEST(FaultStream, NthMeetsOneEventAndEveryMeetsItsMultiples) {
  const Rules rules = rules_of("op=SEND nth=3 delay=1ms\nop=WRITE every=4 delay=1ms");
  EXPECT_THAT(lines(rules, Event::kSend, 12), ElementsAre(std::pair(3, 1)));
  EXPECT_THAT(lines(rules, Event::kWrite, 12),
              ElementsAre(std::pair(4, 2), std::pair(8, 2), std::pair(12, 2)));
  EXPECT_TRUE(lines(rules, Event::kRead, 12).empty());
}

TEST(FaultStream, TheFirstRuleThatMeetsWinsAndTheOthersCountOn) {
  const Rules rules =
      rules_of("op=SEND nth=4 delay=1ms\nop=SEND every=2 delay=2ms\nop=SEND nth=5 delay=3ms");
  EXPECT_THAT(lines(rules, Event::kSend, 6),
              ElementsAre(std::pair(2, 2), std::pair(4, 1), std::pair(5, 3), std::pair(6, 2)));
}

TEST(FaultStream, WhatIsTakenBackIsCountedAgainAndMeetsTheSame) {
  Rules rules = rules_of(
      "seed 3\nop=SEND probability=0.5 delay=1ms..2ms\nop=SEND nth=4 delay=3ms\n"
      "op=WRITE nth=2 delay=4ms");
  const std::vector<Injected> straight = sequence(rules, {Scope::kQueuePair, 1}, Event::kSend, 16);
  Stream stream(Scope::kQueuePair, 1);
  EXPECT_FALSE(stream.next(rules, Event::kWrite));
  std::vector<Injected> met;
  for (int i = 0; i < 16; ++i) {
    for (int refusals = i % 3; refusals > 0; --refusals) {
      stream.next(rules, Event::kSend);
      stream.take_back(rules, {.event = Event::kSend});
    }
    if (const auto hit = stream.next(rules, Event::kSend))
      met.push_back({hit->number, hit->rule->line, hit->delay});
  }
  EXPECT_EQ(met, straight);
  EXPECT_TRUE(stream.next(rules, Event::kWrite)) << "events of other kinds count on";
  // What other rules have counted since stays.
  const Rules before = rules;
  ++rules.edition;
  stream.next(rules, Event::kWrite);
  stream.take_back(before, {.event = Event::kWrite});
  EXPECT_TRUE(stream.next(rules, Event::kWrite));
}

TEST(FaultStream, EventsOfOtherKindsAreNotCounted) {
  const Rules rules = rules_of("op=WRITE nth=2 delay=1ms");
  Stream stream(Scope::kQueuePair, 1);
  EXPECT_FALSE(stream.next(rules, Event::kWrite));
  EXPECT_FALSE(stream.next(rules, Event::kSend));
  EXPECT_TRUE(stream.next(rules, Event::kWrite));
}

TEST(FaultStream, ARuleCountsTheConnectionsOfItsPortOnly) {
  const Rules rules = rules_of("connect port=7 nth=2 reject\nconnect nth=3 timeout");
  Stream stream(Scope::kProcess, 0);
  EXPECT_FALSE(stream.next(rules, {.event = Event::kConnect, .port = 7}));
  EXPECT_FALSE(stream.next(rules, {.event = Event::kConnect, .port = 8}));
  const auto both = stream.next(rules, {.event = Event::kConnect, .port = 7});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->rule->line, 1);
  EXPECT_EQ(both->number, 2u);
  EXPECT_FALSE(stream.next(rules, {.event = Event::kConnect, .port = 0}));
  Stream another(Scope::kProcess, 0);
  for (int i = 0; i < 2; ++i)
    EXPECT_FALSE(another.next(rules, {.event = Event::kConnect, .port = 0}));
  EXPECT_EQ(another.next(rules, {.event = Event::kConnect, .port = 0})->rule->line, 2);
}

TEST(FaultStream, ADelayIsWithinItsBounds) {
  const Rules rules = rules_of("seed 3\nop=SEND delay=5us..6us");
  const auto met = sequence(rules, {Scope::kQueuePair, 1}, Event::kSend, 1000);
  ASSERT_EQ(met.size(), 1000u);
  bool differ = false;
  for (const Injected& each : met) {
    EXPECT_GE(each.delay, 5 * core::kMicrosecond);
    EXPECT_LE(each.delay, 6 * core::kMicrosecond);
    differ = differ || each.delay != met.front().delay;
  }
  EXPECT_TRUE(differ);
}

TEST(FaultStream, AProbabilityIsMetAboutAsOften) {
  const Rules rules = rules_of("seed 9\nop=SEND probability=0.25 delay=1ms");
  const size_t met = sequence(rules, {Scope::kQueuePair, 1}, Event::kSend, 10000).size();
  EXPECT_GT(met, 2300u);  // 4.6 standard deviations; and the seed is always the same
  EXPECT_LT(met, 2700u);
  const Rules certain = rules_of("op=SEND probability=1 delay=1ms");
  EXPECT_EQ(sequence(certain, {Scope::kQueuePair, 1}, Event::kSend, 1000).size(), 1000u);
}

TEST(FaultStream, TheSameSeedGivesTheSameInjectionsTwentyTimes) {
  const Rules rules =
      rules_of("seed 7\nop=SEND probability=0.1 delay=1us..20ms\nop=SEND every=9 delay=1us..2us");
  const Stream stream(Scope::kQueuePair, 4);
  const auto first = sequence(rules, stream, Event::kSend, 500);
  EXPECT_GT(first.size(), 50u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sequence(rules, stream, Event::kSend, 500), first);
}

// A file that somebody has must go on doing what it did.
TEST(FaultStream, ASeedGivesTheSameInjectionsInEveryRelease) {
  const Rules rules = rules_of("seed 7\nop=SEND probability=0.2 delay=1us..20ms");
  auto met = sequence(rules, {Scope::kQueuePair, 4}, Event::kSend, 60);
  ASSERT_GE(met.size(), 5u);
  met.resize(5);
  EXPECT_THAT(met, ElementsAre(Injected{11, 2, 4861400}, Injected{15, 2, 12925050},
                               Injected{29, 2, 18271779}, Injected{30, 2, 10255927},
                               Injected{32, 2, 8329062}));
}

TEST(FaultStream, AnotherSeedOrQueuePairGivesOthers) {
  const char* const kText = "op=SEND probability=0.1 delay=1ms";
  Rules rules = rules_of(kText);
  const auto first = sequence(rules, {Scope::kQueuePair, 1}, Event::kSend, 500);
  EXPECT_NE(sequence(rules, {Scope::kQueuePair, 2}, Event::kSend, 500), first);
  rules.seed = 1;
  EXPECT_NE(sequence(rules, {Scope::kQueuePair, 1}, Event::kSend, 500), first);
}

}  // namespace
}  // namespace uiw::faults
