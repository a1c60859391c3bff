// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mem/last_region.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace uiw::mem {
namespace {

constexpr size_t kMany = 1024;

uint32_t must_add(Table& table, uint8_t* memory, uint64_t length) {
  auto stag =
      table.add(1, memory, 0, length, kLocalWrite | kRemoteWrite | kRemoteRead | kMwBind, kMany);
  EXPECT_TRUE(stag.has_value());
  return stag ? *stag : 0;
}

TEST(LastRegion, FindsWhatTheTableHas) {
  Table table;
  uint8_t memory[2][16];
  const uint32_t first = must_add(table, memory[0], 16), second = must_add(table, memory[1], 16);
  LastRegion regions(Side::kReceive);
  for (const uint32_t stag : {first, first, second, first, second, second}) {
    const LastRegion::Found found = regions.find(table, stag);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->stag, stag);
    EXPECT_EQ(found->memory, memory[stag == first ? 0 : 1]);
    EXPECT_FALSE(regions.find(table, 0));
    EXPECT_FALSE(regions.find(table, stag ^ 1));
  }
  regions.release();
  EXPECT_EQ(table.remove(first), 0);
  EXPECT_FALSE(regions.find(table, first));
  EXPECT_TRUE(regions.find(table, second));
}

// Each side counts its references apart from the other.
TEST(LastRegion, RemovalWaitsForTheReleaseOfEitherSide) {
  for (const Side side : {Side::kReceive, Side::kSend}) {
    Table table;
    uint8_t memory[16];
    const uint32_t stag = must_add(table, memory, sizeof memory);
    LastRegion regions(side);
    ASSERT_TRUE(regions.find(table, stag));  // the reference that was lent is gone
    std::atomic<bool> removed{false};
    std::thread remover([&] {
      EXPECT_EQ(table.remove(stag), 0);
      removed = true;
    });
    while (regions.find(table, stag)) std::this_thread::yield();
    EXPECT_FALSE(removed);
    regions.release();
    remover.join();
    EXPECT_TRUE(removed);
  }
}

TEST(LastRegion, WhatComesNextReleasesIt) {
  Table table;
  uint8_t memory[2][16];
  const uint32_t first = must_add(table, memory[0], 16), second = must_add(table, memory[1], 16);
  LastRegion regions(Side::kReceive);
  ASSERT_TRUE(regions.find(table, first));
  ASSERT_TRUE(regions.find(table, second));
  EXPECT_EQ(table.remove(first), 0);
  EXPECT_TRUE(regions.find(table, second));
}

// A peer invalidates a window in the same octets in which it used it: whoever looked it up must not
// wait for himself.
TEST(LastRegion, KeepsNoWindow) {
  Table table;
  uint8_t memory[64];
  const Stream stream{.pd = 1, .id = 7};
  const uint32_t region = must_add(table, memory, sizeof memory);
  auto window = table.add_window(1, WindowType::kType2, kMany);
  ASSERT_TRUE(window);
  ASSERT_EQ(table.bind(stream, {.window = *window,
                                .stag = *window,
                                .region = region,
                                .access = kRemoteWrite,
                                .start = 0,
                                .length = 16}),
            0);
  LastRegion regions(Side::kReceive);
  ASSERT_TRUE(regions.find(table, region));
  ASSERT_TRUE(regions.find(table, *window));
  EXPECT_EQ(table.invalidate(stream, *window), Invalidation::kDone);
  EXPECT_FALSE(regions.find(table, *window));
  EXPECT_TRUE(regions.find(table, region));
}

}  // namespace
}  // namespace uiw::mem
