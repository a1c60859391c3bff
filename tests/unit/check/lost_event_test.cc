// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/lost_event.h"

#include <gmock/gmock.h>

#include "check/objects.h"

namespace uiw::check {
namespace {

using testing::HasSubstr;
using How = Arming::How;

// What certainly waits for ever.
Blocked lost() {
  Blocked blocked;
  blocked.wait = Wait::kSolely;
  blocked.arming = {How::kAny, 2};
  blocked.waiting = blocked.messages = 1;
  return blocked;
}

void expect_hint(const Blocked& blocked) {
  const auto found = judge(blocked);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_hint);
}

void expect_certain(const Blocked& blocked, const char* reason) {
  const auto found = judge(blocked);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_hint);
  EXPECT_THAT(found->what, HasSubstr(reason));
}

TEST(LostEvent, AMessageThatWaitedAtTheLastArmingIsCertain) {
  expect_certain(lost(), "when it was armed last, 2 were in it already");
}

TEST(LostEvent, AQueueThatWasNotArmedAgainIsCertain) {
  Blocked blocked = lost();
  blocked.arming.held = 0;
  expect_certain(blocked, "was not called since");
}

TEST(LostEvent, AQueueThatWasNeverArmedIsCertainWhateverWaits) {
  Blocked blocked = lost();
  blocked.arming = {};
  blocked.messages = 0;
  expect_certain(blocked, "never called");
}

TEST(LostEvent, WithoutCompletionsOrAWaitThereIsNone) {
  Blocked blocked = lost();
  blocked.waiting = blocked.messages = 0;
  EXPECT_FALSE(judge(blocked));
  blocked = lost();
  blocked.wait = Wait::kOther;
  EXPECT_FALSE(judge(blocked));
}

TEST(LostEvent, WhoAsksForSolicitedOnesMeansToWait) {
  Blocked blocked = lost();
  blocked.arming.how = How::kSolicitedOnly;
  EXPECT_FALSE(judge(blocked));
}

TEST(LostEvent, WhatMayBeWokenOtherwiseIsAHint) {
  Blocked blocked = lost();
  blocked.wait = Wait::kAmong;
  expect_hint(blocked);
  blocked = lost();
  blocked.is_shared = true;
  expect_hint(blocked);
  blocked = lost();
  blocked.others = 1;
  expect_hint(blocked);
  blocked = lost();
  blocked.messages = 0;  // of sends, which may lie
  expect_hint(blocked);
}

TEST(Usage, IsOneThreadsOrShared) {
  Usage usage;
  EXPECT_EQ(usage.poller(), 0);
  usage.armed(1);  // before the first poll: set-up
  usage.polled(2);
  usage.armed(2);
  EXPECT_EQ(usage.poller(), 2);
  EXPECT_FALSE(usage.is_shared());
  EXPECT_EQ(usage.count(), 3u);
  usage.armed(1);
  EXPECT_TRUE(usage.is_shared());
  EXPECT_EQ(usage.poller(), 2);
}

// It may do other work before it polls.
TEST(Usage, WhoHasTakenAnEventUsesTheQueue) {
  Usage usage;
  usage.armed(1);
  usage.event_taken(2);
  EXPECT_EQ(usage.poller(), 2);  // will be
  EXPECT_FALSE(usage.is_shared());
  usage.polled(2);
  usage.event_taken(3);
  EXPECT_TRUE(usage.is_shared());
  EXPECT_EQ(usage.poller(), 2);
  EXPECT_EQ(usage.count(), 4u);
}

TEST(Usage, OfTwoWhoHaveTakenEventsBeforeAnybodyPolled) {
  Usage usage;
  usage.event_taken(2);
  usage.event_taken(3);
  EXPECT_TRUE(usage.is_shared());
}

TEST(Arming, HeldNothingThatAPollHasEmptiedSince) {
  Cq cq;
  cq.set_armed({{How::kAny, 2}});
  EXPECT_EQ(cq.armed().last.held, 2u);
  cq.set_emptied();
  EXPECT_EQ(cq.armed().last.held, 0u);
}

}  // namespace
}  // namespace uiw::check
