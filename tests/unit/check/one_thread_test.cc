// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/one_thread.h"

#include <gtest/gtest.h>

#include <thread>

namespace uiw::check {
namespace {

using Step = Section::Step;

Stack at(uintptr_t address) {
  return Stack({.frames = {address}, .count = 1});
}

TEST(Threads, HaveNumbersThatAreNotUsedAgain) {
  const Thread mine = this_thread();
  EXPECT_EQ(this_thread(), mine);
  Thread one = 0, other = 0;
  std::thread([&] { one = this_thread(); }).join();
  std::thread([&] { other = this_thread(); }).join();
  EXPECT_NE(one, mine);
  EXPECT_NE(other, mine);
  EXPECT_NE(one, other);
}

TEST(OneAtATime, TellsWhereTheOtherThreadCameIn) {
  OneAtATime calls;
  EXPECT_FALSE(calls.enter(1, at(10)));
  const auto within = calls.enter(2, at(20));
  ASSERT_TRUE(within);
  EXPECT_EQ(within->thread, 1u);
  EXPECT_TRUE(within->where == at(10));
  calls.leave(2);  // was not let in
  EXPECT_TRUE(calls.enter(2, at(20)));
  calls.leave(1);
  EXPECT_FALSE(calls.enter(2, at(20)));
}

TEST(Sections, OfOneThreadAreFine) {
  Section section;
  for (int i = 0; i < 2; ++i) {
    section.begin(1, at(10));
    EXPECT_TRUE(section.is_of(1));
    EXPECT_TRUE(section.is_plain(1));
    EXPECT_EQ(section.call(1, at(11)).step, Step::kFine);
    EXPECT_EQ(section.end(), 1u);
    EXPECT_FALSE(section.is_of(1));
    EXPECT_FALSE(section.open());
  }
}

TEST(Sections, CallsBeforeAndBehindAreOutside) {
  Section section;
  EXPECT_EQ(section.call(1, at(10)).step, Step::kOutside);
  section.begin(1, at(11));
  section.end();
  EXPECT_EQ(section.call(1, at(12)).step, Step::kOutside);
  EXPECT_EQ(section.end(), 0u);
}

TEST(Sections, MayBeHandedToAnotherThread) {
  Section section;
  section.begin(1, at(10));
  EXPECT_EQ(section.call(2, at(20)).step, Step::kFine);
  EXPECT_EQ(section.call(2, at(21)).step, Step::kFine);
  EXPECT_EQ(section.end(), 1u);
  section.begin(1, at(10));
  EXPECT_TRUE(section.is_plain(1)) << "of the one before";
}

TEST(Sections, OfOneThreadThatGoesOnAfterAnothersCallAreMixed) {
  Section section;
  section.begin(1, at(10));
  section.call(2, at(20));
  EXPECT_FALSE(section.is_plain(1));
  const Section::Fault fault = section.call(1, at(11));
  EXPECT_EQ(fault.step, Step::kMixed);
  EXPECT_TRUE(fault.begun == at(10));
  EXPECT_TRUE(fault.other == at(20));
}

TEST(Sections, ThatAreOpenSayWhereTheyBegan) {
  Section section;
  section.begin(3, at(10));
  ASSERT_TRUE(section.open());
  EXPECT_TRUE(*section.open() == at(10));
}

}  // namespace
}  // namespace uiw::check
