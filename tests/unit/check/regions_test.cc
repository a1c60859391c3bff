// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/regions.h"

#include <gmock/gmock.h>

namespace uiw::check {
namespace {

using testing::HasSubstr;

constexpr uint32_t kStag = 0x12345678;
uint8_t g_memory[4096];
const int g_domain = 0, g_other_domain = 0;

Region region(uint32_t stag = kStag, uint32_t access = IBV_ACCESS_LOCAL_WRITE) {
  Region made;
  made.stag = stag;
  made.pd = &g_domain;
  made.memory = g_memory;
  made.start = 0x1000;
  made.length = sizeof g_memory;
  made.access = access;
  return made;
}

Verdict judge(const Regions& regions, uint64_t addr, uint32_t length, uint32_t lkey,
              bool written = false, const void* pd = &g_domain) {
  return regions.judge({addr, length, lkey}, pd, written);
}

TEST(Regions, GiveAnLkeyThatIsNotTheRkey) {
  Regions regions;
  const Region& made = regions.add(region());
  EXPECT_NE(made.lkey, made.stag);
  EXPECT_EQ(regions.stag_of(made.lkey), kStag);
  EXPECT_EQ(regions.stag_of(kStag), 0u);
  EXPECT_EQ(regions.find(made.lkey)->at({0x1010, 1, 0}), g_memory + 0x10);
}

TEST(Regions, NoLkeyIsTheKeyOfAnother) {
  Regions regions;
  const uint32_t first = regions.add(region()).lkey;
  // The rkey that the first lkey equals, and the one whose lkey would be the first rkey.
  EXPECT_NE(regions.add(region(first)).lkey, kStag);
  EXPECT_EQ(regions.stag_of(first), kStag);
}

// The stack frees a stag before the region is removed here.
TEST(Regions, AreFoundByAStagThatOneHadThatIsRemovedOrChangedLater) {
  Regions regions;
  Region& removed = regions.add(region());
  const std::shared_ptr<Region> kept = removed.shared_from_this();
  Region& second = regions.add(region());
  regions.remove(removed);
  EXPECT_EQ(regions.find_by_stag(kStag).get(), &second);
  const Region& third = regions.add(region());
  regions.change(second, region(kStag + 1));
  EXPECT_EQ(regions.find_by_stag(kStag).get(), &third);
}

TEST(Regions, HaveNothingToSayOfAnSgeInside) {
  Regions regions;
  const uint32_t lkey = regions.add(region()).lkey;
  EXPECT_EQ(judge(regions, 0x1000, 4096, lkey, true).what, "");
  EXPECT_EQ(judge(regions, 0x1fff, 1, lkey).what, "");
}

TEST(Regions, SayByHowMuchAnSgeIsOutside) {
  Regions regions;
  const uint32_t lkey = regions.add(region()).lkey;
  EXPECT_THAT(judge(regions, 0x1ff0, 32, lkey).what, HasSubstr("ends 16 bytes behind the end of"));
  EXPECT_THAT(judge(regions, 0x0ff8, 32, lkey).what, HasSubstr("begins 8 bytes before"));
  EXPECT_THAT(judge(regions, 0x2004, 1, lkey).what, HasSubstr("begins 4 bytes behind the end of"));
  EXPECT_THAT(judge(regions, ~uint64_t{0} - 3, 64, lkey).what, HasSubstr("behind the end of"));
  EXPECT_EQ(judge(regions, 0x1ff0, 32, lkey).places.size(), 1u);
}

TEST(Regions, KnowAnRkeyInThePlaceOfAnLkey) {
  Regions regions;
  regions.add(region());
  const Verdict verdict = judge(regions, 0x1000, 1, kStag);
  EXPECT_EQ(verdict.kind, Kind::kKeySwapped);
  EXPECT_THAT(verdict.what, HasSubstr("has the rkey instead of the lkey of memory region 1"));
}

TEST(Regions, KnowAnLkeyThatThePeerWasGiven) {
  Regions regions;
  const Region& made = regions.add(region());
  EXPECT_EQ(regions.given_lkey_of(made.lkey, 0x1000, 4096), &made);
  EXPECT_EQ(regions.given_lkey_of(made.lkey, 0x1fff, 1), &made);
  // Of other memory it may be any number.
  EXPECT_EQ(regions.given_lkey_of(made.lkey, 0x1fff, 2), nullptr);
  EXPECT_EQ(regions.given_lkey_of(made.lkey, 0xfff, 1), nullptr);
  EXPECT_EQ(regions.given_lkey_of(made.lkey, 0x1000, 4097), nullptr);
  EXPECT_EQ(regions.given_lkey_of(made.lkey, ~uint64_t{0}, 1), nullptr);
  EXPECT_EQ(regions.given_lkey_of(kStag, 0x1000, 1), nullptr);
  EXPECT_EQ(regions.given_lkey_of(7, 0x1000, 1), nullptr);
}

TEST(Regions, SuspectBytesInTheOtherOrder) {
  Regions regions;
  const uint32_t lkey = regions.add(region()).lkey;
  const Verdict key = judge(regions, 0x1000, 1, __builtin_bswap32(lkey));
  EXPECT_THAT(key.what, HasSubstr("in the other order it is the lkey of memory region 1"));
  EXPECT_EQ(key.kind, Kind::kLocalProtection);
  EXPECT_THAT(judge(regions, __builtin_bswap64(0x1fff), 1, lkey).what,
              HasSubstr("its address, 0x1fff, lies within"));
  EXPECT_THAT(judge(regions, __builtin_bswap64(0x1fff), 2, lkey).what,
              HasSubstr("behind the end of"));
}

TEST(Regions, RememberWhatWasDeregistered) {
  Regions regions;
  Region& made = regions.add(region());
  const uint32_t lkey = made.lkey;
  regions.remove(made);
  const Verdict verdict = judge(regions, 0x1000, 1, lkey);
  EXPECT_THAT(verdict.what, HasSubstr("is deregistered"));
  EXPECT_EQ(verdict.places.size(), 2u);
  EXPECT_EQ(regions.find(lkey), nullptr);
}

TEST(Regions, NameTheNearestForAKeyThatNobodyHas) {
  Regions regions;
  EXPECT_THAT(judge(regions, 0x1000, 1, 7).what, HasSubstr("a key that no memory region has"));
  regions.add(region());
  Region far = region(kStag + 0x100);
  far.start = 0x100000;
  regions.add(far);
  EXPECT_THAT(judge(regions, 0x1800, 1, 7).what,
              HasSubstr("its memory is that of memory region 1"));
  EXPECT_THAT(judge(regions, 0xfff00, 1, 7).what, HasSubstr("the nearest one is memory region 2"));
}

TEST(Regions, KnowTheDomainAndTheRightToWrite) {
  Regions regions;
  const uint32_t lkey = regions.add(region(kStag, 0)).lkey;
  EXPECT_THAT(judge(regions, 0x1000, 1, lkey, false, &g_other_domain).what,
              HasSubstr("another protection domain"));
  EXPECT_THAT(judge(regions, 0x1000, 1, lkey, true).what, HasSubstr("IBV_ACCESS_LOCAL_WRITE"));
  EXPECT_EQ(judge(regions, 0x1000, 1, lkey, false).what, "");
}

TEST(Regions, KeepTheLkeyAsLongAsTheStackKeepsTheKey) {
  Regions regions;
  Region& made = regions.add(region());
  const uint32_t lkey = made.lkey;
  regions.change(made, region(kStag, 0));
  EXPECT_EQ(made.lkey, lkey);
  EXPECT_EQ(made.access, 0u);
  regions.change(made, region(kStag + 1));
  EXPECT_NE(made.lkey, lkey);
  EXPECT_EQ(regions.stag_of(lkey), 0u);
  EXPECT_EQ(regions.stag_of(made.lkey), kStag + 1);
  EXPECT_EQ(made.number, 1u);
}

}  // namespace
}  // namespace uiw::check
