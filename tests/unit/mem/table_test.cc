// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mem/table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <thread>
#include <vector>

namespace uiw::mem {
namespace {

constexpr size_t kMany = 1u << 20;

uint32_t must_add(Table& table, uint8_t* memory, uint64_t length = 16, uint32_t pd = 1) {
  auto stag =
      table.add(pd, memory, reinterpret_cast<uintptr_t>(memory), length, kRemoteWrite, kMany);
  EXPECT_TRUE(stag.has_value());
  return stag ? *stag : 0;
}

TEST(Table, FindsWhatWasAdded) {
  Table table;
  uint8_t memory[16];
  auto stag = table.add(7, memory, 0x1000, 16, kLocalWrite | kRemoteRead, kMany);
  ASSERT_TRUE(stag);
  EXPECT_EQ(table.size(), 1u);
  RegionRef region = table.find(*stag);
  ASSERT_TRUE(region);
  EXPECT_EQ(region->stag, *stag);
  EXPECT_EQ(region->pd, 7u);
  EXPECT_EQ(region->start, 0x1000u);
  EXPECT_EQ(region->length, 16u);
  EXPECT_EQ(region->access, kLocalWrite | kRemoteRead);
  EXPECT_EQ(region->memory, memory);
}

TEST(Table, KnowsNoOtherStag) {
  Table table;
  EXPECT_FALSE(table.find(0));
  EXPECT_FALSE(table.find(0x12345678));
  EXPECT_EQ(table.remove(0), EINVAL);
  EXPECT_EQ(table.remove(0x12345678), EINVAL);
  uint8_t memory[16];
  const uint32_t stag = must_add(table, memory);
  EXPECT_FALSE(table.find(stag ^ 1));      // another key
  EXPECT_FALSE(table.find(stag ^ 0x100));  // another index
  EXPECT_FALSE(table.find(0));
  EXPECT_EQ(table.remove(stag ^ 1), EINVAL);
  EXPECT_TRUE(table.find(stag));
}

TEST(Table, ForgetsWhatWasRemoved) {
  Table table;
  uint8_t memory[16];
  const uint32_t stag = must_add(table, memory);
  EXPECT_EQ(table.remove(stag), 0);
  EXPECT_FALSE(table.find(stag));
  EXPECT_EQ(table.remove(stag), EINVAL);
  EXPECT_EQ(table.size(), 0u);
}

TEST(Table, EnforcesTheLimit) {
  Table table;
  uint8_t memory[16];
  std::vector<uint32_t> stags;
  for (int i = 0; i < 3; ++i) {
    auto stag = table.add(1, memory, 0, 16, 0, 3);
    ASSERT_TRUE(stag);
    stags.push_back(*stag);
  }
  EXPECT_EQ(table.add(1, memory, 0, 16, 0, 3).error(), ENOMEM);
  EXPECT_EQ(table.remove(stags[1]), 0);
  EXPECT_TRUE(table.add(1, memory, 0, 16, 0, 3));
}

TEST(Table, GrowsAndKeepsEverything) {
  Table table;
  std::vector<uint8_t> memory(10'000);
  std::vector<uint32_t> stags;
  for (uint8_t& octet : memory) stags.push_back(must_add(table, &octet, 1));
  EXPECT_EQ(std::set<uint32_t>(stags.begin(), stags.end()).size(), stags.size());
  for (size_t i = 0; i < stags.size(); ++i) {
    RegionRef region = table.find(stags[i]);
    ASSERT_TRUE(region);
    EXPECT_EQ(region->memory, &memory[i]);
  }
  for (size_t i = 0; i < stags.size(); i += 2) EXPECT_EQ(table.remove(stags[i]), 0);
  for (size_t i = 0; i < stags.size(); ++i)
    EXPECT_EQ(static_cast<bool>(table.find(stags[i])), i % 2 == 1);
}

// Conformance SE-09: no STag comes back soon, none is predictable from the one before.
TEST(Table, StagsAreNotReusedSoonAndNotSequential) {
  Table table;
  uint8_t memory[16];
  std::vector<uint32_t> given;
  std::set<uint32_t> steps;
  for (int i = 0; i < 5000; ++i) {
    const uint32_t stag = must_add(table, memory);
    EXPECT_NE(stag, 0u);
    for (size_t back = 1; back <= std::min<size_t>(1024, given.size()); ++back)
      ASSERT_NE(given[given.size() - back], stag);
    if (!given.empty()) steps.insert(stag - given.back());
    given.push_back(stag);
    ASSERT_EQ(table.remove(stag), 0);
  }
  EXPECT_GT(steps.size(), 4900u);
}

TEST(Table, ReusesTheLastStagAtOnceWhenAskedTo) {
  Table table(Reuse::kAtOnce);
  uint8_t memory[16], other[16];
  const uint32_t first = must_add(table, memory), second = must_add(table, memory);
  EXPECT_NE(first, second);
  ASSERT_EQ(table.remove(first), 0);
  EXPECT_EQ(must_add(table, other), first);
  EXPECT_EQ(table.find(first)->memory, other);
  EXPECT_EQ(table.find(second)->memory, memory);
  const uint32_t third = must_add(table, memory);
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
}

// RFC 5040 8.1.1(8): sparsely populated over the full range. Every bit is as often 0 as 1, and
// every sixteenth of the range has its share, within six standard deviations.
TEST(Table, StagsSpreadOverTheWholeRange) {
  Table table;
  uint8_t memory[16];
  constexpr int kStags = 16384;
  int ones[32] = {}, sixteenths[16] = {};
  for (int i = 0; i < kStags; ++i) {
    const uint32_t stag = must_add(table, memory);
    for (int bit = 0; bit < 32; ++bit) ones[bit] += stag >> bit & 1;
    ++sixteenths[stag >> 28];
  }
  for (int count : ones) EXPECT_NEAR(count, kStags / 2, 6 * 64);  // sqrt(n / 4) = 64
  for (int count : sixteenths)
    EXPECT_NEAR(count, kStags / 16, 6 * 31);  // sqrt(n / 16 * 15 / 16) = 31
}

TEST(RegionRef, MovesAndReleases) {
  Table table;
  uint8_t memory[16];
  const uint32_t stag = must_add(table, memory);
  RegionRef first = table.find(stag);
  RegionRef second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT: a moved-from reference is empty
  ASSERT_TRUE(second);
  first = std::move(second);
  EXPECT_TRUE(first);
  first.reset();
  EXPECT_FALSE(first);
  EXPECT_EQ(table.remove(stag), 0);  // would wait for ever if one was left
}

TEST(Table, RemoveWaitsForTheLastReference) {
  Table table;
  uint8_t memory[16];
  const uint32_t stag = must_add(table, memory);
  RegionRef region = table.find(stag);
  ASSERT_TRUE(region);
  std::atomic<bool> removed{false};
  std::thread remover([&] {
    EXPECT_EQ(table.remove(stag), 0);
    removed = true;
  });
  while (table.find(stag)) std::this_thread::yield();  // revoked at once,
  EXPECT_FALSE(removed);                               // but not given back
  EXPECT_EQ(region->memory, memory);
  region.reset();
  remover.join();
  EXPECT_TRUE(removed);
}

// Keeps a reference until it is asked, and a little longer, as a queue pair's engine does.
class SlowPinHolder final : public PinHolder {
 public:
  explicit SlowPinHolder(RegionRef&& region) : kept(std::move(region)) {}
  void give_back() override { asked = true; }
  void wait_and_let_go() {
    while (!asked) std::this_thread::yield();
    kept.reset();
  }
  std::atomic<bool> asked{false};
  RegionRef kept;
};

TEST(Table, RemoveAsksThoseWhoKeepAReference) {
  Table table;
  uint8_t memory[16];
  const uint32_t stag = must_add(table, memory), other = must_add(table, memory);
  SlowPinHolder first(table.find(stag)), second(table.find(stag, Side::kSend)), third({});
  for (SlowPinHolder* holder : {&first, &second, &third}) table.join(*holder);
  table.leave(third);
  EXPECT_EQ(table.remove(other), 0);
  EXPECT_FALSE(first.asked) << "nobody had that one";
  std::thread engine([&] {
    first.wait_and_let_go();
    second.wait_and_let_go();
  });
  EXPECT_EQ(table.remove(stag), 0);  // waits for ever if one is not asked
  engine.join();
  EXPECT_FALSE(third.asked) << "it had left";
  table.leave(first);
  table.leave(second);
}

TEST(Table, ChangeOfAccessAsksThoseWhoKeepAReference) {
  Table table;
  uint8_t memory[16];
  const uint32_t stag = must_add(table, memory);
  SlowPinHolder holder(table.find(stag));
  table.join(holder);
  std::thread engine([&] { holder.wait_and_let_go(); });
  EXPECT_EQ(table.change_access(stag, kRemoteRead), 0);
  engine.join();
  table.leave(holder);
}

// One thread per slot registers, writes a mark beside the memory, deregisters, changes the mark;
// the others look the STags up all the time. Whoever holds a reference must see the mark of a
// registration that is still valid: with TSan this is also a race check on Region's fields.
TEST(Table, DeregistrationDuringAStormOfLookUps) {
  Table table;
  constexpr int kOwners = 2, kReaders = 2, kRounds = 3000;
  struct Owned {
    alignas(64) uint64_t memory = 0;  // plain: protected by the table's promise alone
    std::atomic<uint32_t> stag{0};
    std::atomic<uint64_t> hits{0};
  } owned[kOwners];
  std::atomic<int> running{kOwners};

  std::vector<std::thread> threads;
  for (int o = 0; o < kOwners; ++o) {
    threads.emplace_back([&, o] {
      Owned& mine = owned[o];
      for (int round = 0; round < kRounds; ++round) {
        mine.memory = 1;  // nobody else can reach it here
        const uint32_t stag = must_add(table, reinterpret_cast<uint8_t*>(&mine.memory), 8);
        mine.stag.store(stag, std::memory_order_release);
        if (round % 16 == 0) {  // now and then let somebody get hold of it
          const uint64_t before = mine.hits;
          while (mine.hits == before) std::this_thread::yield();
        }
        EXPECT_EQ(table.remove(stag), 0);
        EXPECT_EQ(mine.memory, 1u);
        mine.memory = 2;
      }
      running.fetch_sub(1);
    });
  }
  for (int r = 0; r < kReaders; ++r) {
    threads.emplace_back([&] {
      while (running.load() > 0) {
        for (Owned& theirs : owned) {
          RegionRef region = table.find(theirs.stag.load(std::memory_order_acquire));
          if (!region) continue;
          theirs.hits.fetch_add(1, std::memory_order_relaxed);
          EXPECT_EQ(*reinterpret_cast<const uint64_t*>(region->memory), 1u);
          EXPECT_EQ(region->length, 8u);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.size(), 0u);
}

TEST(Check, TellsTheFirstFault) {
  Table table;
  uint8_t memory[100];
  auto stag = table.add(5, memory, 1000, 100, kLocalWrite | kRemoteWrite, kMany);
  RegionRef region = table.find(*stag);
  EXPECT_EQ(check(*region, 5, 1000, 100, kRemoteWrite), Fault::kNone);
  EXPECT_EQ(check(*region, 5, 1100, 0, kRemoteWrite), Fault::kNone);
  EXPECT_EQ(check(*region, 5, 1099, 1, kRemoteWrite), Fault::kNone);
  EXPECT_EQ(check(*region, 6, 0, 1, kRemoteRead), Fault::kProtectionDomain);
  EXPECT_EQ(check(*region, 5, 0, 1, kRemoteRead), Fault::kRights);
  EXPECT_EQ(check(*region, 5, ~0ull, 2, kRemoteWrite), Fault::kWrap);
  EXPECT_EQ(check(*region, 5, 999, 1, kRemoteWrite), Fault::kBounds);
  EXPECT_EQ(check(*region, 5, 1000, 101, kRemoteWrite), Fault::kBounds);
  EXPECT_EQ(check(*region, 5, 1100, 1, kRemoteWrite), Fault::kBounds);
  EXPECT_EQ(check(*region, 5, 1101, 0, kRemoteWrite), Fault::kBounds);
}

}  // namespace
}  // namespace uiw::mem
