// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/unmapping.h"

#include <gtest/gtest.h>

#include <array>

#include "check/ranges.h"

namespace uiw::check {
namespace {

const int g_first = 0, g_second = 0;

TEST(Ranges, AreFoundByAnyByteOfTheirs) {
  Ranges ranges;
  ranges.add({0x1000, 0x2000, &g_first, &g_first});
  ranges.add({0x1800, 0x3000, &g_second, &g_second});
  std::array<const void*, 4> owners{};
  EXPECT_EQ(ranges.find(0, 0x1000, owners), 0u);
  EXPECT_EQ(ranges.find(0x3000, 0x4000, owners), 0u);
  ASSERT_EQ(ranges.find(0x1fff, 0x2000, owners), 2u);
  ASSERT_EQ(ranges.find(0x2000, 0x2001, owners), 1u);
  EXPECT_EQ(owners[0], &g_second);
  EXPECT_EQ(ranges.find(0, 0x4000, std::span(owners).first(1)), 1u);
}

TEST(Ranges, GoByTheirKeyHoweverManyThereAre) {
  Ranges ranges;
  std::array<int, 100> keys{};
  for (size_t i = 0; i < keys.size(); ++i) ranges.add({i, i + 1, &keys[i], &keys[i]});
  std::array<const void*, 2> owners{};
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(ranges.find(i, i + 1, owners), 1u) << i;
    EXPECT_EQ(owners[0], &keys[i]);
  }
  for (size_t i = 0; i < keys.size(); i += 2) ranges.remove(&keys[i]);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(ranges.find(i, i + 1, owners), i % 2) << i;
}

// Where an SGE lies is said by its region: its addresses need not be those of memory.
TEST(Requests, AreWithinByMemoryThatIsRegistered) {
  uint8_t* const memory = reinterpret_cast<uint8_t*>(0x100000);
  Regions regions;
  Region region;
  region.stag = 0x12345678;
  region.memory = memory;
  region.start = 0;
  region.length = 0x1000;
  const Region& made = regions.add(region);
  const ibv_sge sges[] = {{0, 0x10, made.lkey}, {0x800, 0x10, made.lkey}, {0xa00, 0, made.lkey}};
  Request request;
  request.sges = sges;
  EXPECT_EQ(region_within(request, regions, 0x100000, 0x101000), &made);
  EXPECT_EQ(region_within(request, regions, 0x10080f, 0x100810), &made);
  EXPECT_EQ(region_within(request, regions, 0x100810, 0x101000), nullptr);
  EXPECT_EQ(region_within(request, regions, 0, 0x1000), nullptr);
  regions.remove(const_cast<Region&>(made));
  EXPECT_EQ(region_within(request, regions, 0x100000, 0x101000), nullptr);
}

TEST(Requests, OfRegionsForPagingOnDemandMayLoseTheirMemory) {
  Regions regions;
  Region region;
  region.stag = 0x12345678;
  region.memory = nullptr;
  region.length = ~uint64_t{0};
  region.access = IBV_ACCESS_ON_DEMAND;
  const ibv_sge sge{0x1000, 1, regions.add(region).lkey};
  Request request;
  request.sges = {&sge, 1};
  EXPECT_EQ(region_within(request, regions, 0x1000, 0x2000), nullptr);
}

}  // namespace
}  // namespace uiw::check
