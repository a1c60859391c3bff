// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Regions and memory windows that come and go for a long time, while others stay: everything is
// found and nothing else is, each step takes as long as the first, and the memory comes back.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <deque>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "mem/buckets.h"
#include "mem/slots.h"
#include "mem/table.h"
#include "support/resident.h"

namespace uiw::mem {
namespace {

constexpr size_t kMany = 1u << 20;
constexpr uint32_t kPd = 1;
constexpr Stream kStream{kPd, 100};
constexpr uint32_t kBindable = kLocalWrite | kRemoteWrite | kMwBind;

uint32_t must_add(Table& table, uint8_t* memory) {
  auto stag = table.add(kPd, memory, reinterpret_cast<uintptr_t>(memory), 16, kBindable, kMany);
  EXPECT_TRUE(stag.has_value());
  return stag ? *stag : 0;
}

// What the table should know.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed), memory_(4096) {}

  void run(size_t steps, size_t stay, size_t most) {
    for (size_t i = 0; i < stay; ++i) staying_.push_back(add());
    for (size_t i = 0; i < steps && !testing::Test::HasFailure(); ++i) step(most);
    for (const Region_& region : staying_) expect_found(region);
    for (const Region_& region : coming_) expect_found(region);
    EXPECT_EQ(table_.size(), staying_.size() + coming_.size());
    EXPECT_EQ(table_.windows(), windows_.size());
  }

 private:
  struct Region_ {
    uint32_t stag;
    uint8_t* memory;
  };
  struct Window_ {
    uint32_t stag;
    bool bound;
  };

  size_t below(size_t end) { return random_() % end; }
  template <typename T>
  T take(std::vector<T>& all) {
    std::swap(all[below(all.size())], all.back());
    const T taken = all.back();
    all.pop_back();
    return taken;
  }

  Region_ add() {
    uint8_t* const memory = &memory_[below(memory_.size())];
    return {must_add(table_, memory), memory};
  }
  void expect_found(const Region_& region) {
    const RegionRef found = table_.find(region.stag);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->stag, region.stag);
    ASSERT_EQ(found->memory, region.memory);
  }
  void forget(uint32_t stag) {
    gone_.push_back(stag);
    if (gone_.size() > 1000) gone_.pop_front();  // no index comes back before
  }

  void step(size_t most) {
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        if (coming_.size() < most) coming_.push_back(add());
        break;
      case 3:
      case 4: {
        if (coming_.empty()) break;
        const Region_ region = take(coming_);
        ASSERT_EQ(table_.remove(region.stag), 0);
        forget(region.stag);
        break;
      }
      case 5:
        if (!staying_.empty()) expect_found(staying_[below(staying_.size())]);
        if (!coming_.empty()) expect_found(coming_[below(coming_.size())]);
        break;
      case 6:
        if (!gone_.empty()) ASSERT_FALSE(table_.find(gone_[below(gone_.size())]));
        break;
      default:
        step_of_a_window(most);
    }
  }

  void step_of_a_window(size_t most) {
    if (windows_.size() < most / 4 + 1 && below(3) > 0) {
      auto stag = table_.add_window(kPd, WindowType::kType2, kMany);
      ASSERT_TRUE(stag);
      windows_.push_back({*stag, false});
      return;
    }
    if (windows_.empty()) return;
    Window_& window = windows_[below(windows_.size())];
    ASSERT_EQ(static_cast<bool>(table_.find(window.stag)), window.bound);
    if (window.bound) {
      ASSERT_EQ(table_.invalidate(kStream, window.stag), Invalidation::kDone);
      window.bound = false;
    } else if (below(2) == 0 && !staying_.empty()) {
      const Region_& region = staying_[below(staying_.size())];
      const uint32_t stag = (window.stag & ~kKeyMask) | ((window.stag + 1) & kKeyMask);
      const uint64_t start = reinterpret_cast<uintptr_t>(region.memory);
      ASSERT_EQ(table_.bind(kStream, {window.stag, stag, region.stag, kRemoteWrite, start, 8}), 0);
      window = {stag, true};
    } else {
      const Window_ last = take(windows_);
      ASSERT_EQ(table_.remove_window(last.stag), 0);
      forget(last.stag);
    }
  }

  std::mt19937_64 random_;
  std::vector<uint8_t> memory_;
  Table table_;
  std::vector<Region_> staying_, coming_;
  std::vector<Window_> windows_;
  std::deque<uint32_t> gone_;
};

struct Churn {
  uint64_t seed;
  size_t stay, most;
};
class TableChurn : public testing::TestWithParam<Churn> {};

TEST_P(TableChurn, IsAsTheModelSays) {
  Model(GetParam().seed).run(1'000'000, GetParam().stay, GetParam().most);
}
INSTANTIATE_TEST_SUITE_P(BySeed, TableChurn,
                         testing::Values(Churn{1, 1, 1}, Churn{2, 1, 20}, Churn{3, 10, 3},
                                         Churn{4, 30, 3}, Churn{5, 1000, 10},
                                         Churn{6, 1000, 5000}));

// Slots of our own, to see what a look-up does.
struct Entry {
  uint32_t index;
  uint32_t number;
  std::atomic<RefCount*> counts;
  uint8_t rest[48];
};
static_assert(sizeof(Entry) == 64);
uint32_t index_of_entry(const Entry& entry) {
  return entry.index;
}

// One step per look-up, whatever came and went: each index is found in the one bucket that is its
// own, and every bucket without an entry is empty.
TEST(Buckets, HoldOneEntryEachAndNothingOfThoseThatWent) {
  std::mt19937 random(7);
  Slots<Entry> slots;
  Buckets<Entry, &index_of_entry> buckets;
  std::vector<Entry*> live;
  for (int step = 0; step < 1'000'000; ++step) {
    const bool more = live.size() < 20 || (step / 50'000 % 2 == 0 && live.size() < 20'000);
    if (more || random() % 2 == 0) {
      if ((live.size() + 1) * 2 > buckets.size()) {
        const uint32_t before = buckets.resizes();
        ASSERT_TRUE(buckets.grow());
        ASSERT_EQ(buckets.resizes(), before + 1);
      }
      uint32_t index;
      do index = random() >> 8;
      while (buckets.find(index));
      Entry* const entry = slots.take();
      ASSERT_TRUE(entry);
      entry->index = index;
      buckets.insert(entry);
      ASSERT_EQ(buckets.find(index), entry);
      live.push_back(entry);
    } else {
      std::swap(live[random() % live.size()], live.back());
      Entry* const entry = live.back();
      live.pop_back();
      buckets.erase(*entry);
      ASSERT_EQ(buckets.find(entry->index), nullptr);
      slots.give(*entry);
      if (live.size() * 8 < buckets.size()) buckets.shrink();
      if (step % 1000 == 0) slots.trim();
    }
    if (step % 10'000 > 0) continue;
    for (const Entry* entry : live) ASSERT_EQ(buckets.find(entry->index), entry);
    size_t taken = 0;
    buckets.for_each([&](const Entry*) { ++taken; });
    ASSERT_EQ(taken, live.size());
    ASSERT_EQ(slots.taken(), live.size());
  }
}

TEST(Slots, TheLowestFreeOneIsTakenNext) {
  Slots<Entry> slots;
  std::vector<Entry*> all;
  for (uint32_t i = 0; i < 3000; ++i) {
    all.push_back(slots.take());
    ASSERT_EQ(all.back()->number, i);
  }
  for (const uint32_t number : {2500u, 70u, 1023u, 1024u}) slots.give(*all[number]);
  for (const uint32_t number : {70u, 1023u, 1024u, 2500u, 3000u})
    EXPECT_EQ(slots.take()->number, number);
}

// Whoever counts references counts in lines of 64 octets that no other of the first 64 slots uses.
TEST(Slots, CountInCacheLinesOfTheirOwn) {
  Slots<Entry> slots;
  std::vector<uintptr_t> lines;
  for (int i = 0; i < 64; ++i) {
    RefCount* const counts = slots.take()->counts;
    for (RefCount* count : {counts, counts + Slots<Entry>::kOtherCount})
      lines.push_back(reinterpret_cast<uintptr_t>(count) / 64);
  }
  std::ranges::sort(lines);
  EXPECT_EQ(std::ranges::adjacent_find(lines), lines.end());
}

// 8 bytes of each region stay, as slots.h says. Those that stay lie in a page of their own at
// worst, and may keep the buckets from becoming fewer.
TEST(Table, TheMemoryOfManyRegionsComesBack) {
  constexpr size_t kRegions = 500'000, kCounts = 8 * kRegions, kSmall = 1u << 20;
  Table table;
  uint8_t memory[16];
  std::vector<uint32_t> stags(kRegions);
  for (const size_t stay : {1000, 1}) {
    for (uint32_t& stag : stags) stag = must_add(table, memory);
    EXPECT_GT(table.footprint(), 64 * kRegions + kCounts);
    const size_t full = test::resident_bytes();
    for (size_t i = stay; i < kRegions; ++i) ASSERT_EQ(table.remove(stags[i * 7919 % kRegions]), 0);
    const size_t buckets = stay == 1 ? 0 : 2 * kRegions * 2 * sizeof(void*);
    EXPECT_LT(table.footprint(), kCounts + kSmall + stay * core::kPage + buckets);
    if (full > 0) EXPECT_LT(test::resident_bytes() + 32 * kRegions, full);  // half of the slots
    for (size_t i = 0; i < stay; ++i) {
      EXPECT_TRUE(table.find(stags[i * 7919 % kRegions]));
      ASSERT_EQ(table.remove(stags[i * 7919 % kRegions]), 0);
    }
    EXPECT_LT(table.footprint(), kCounts + kSmall);
  }
}

TEST(Table, LookUpsWhileItGrowsAndShrinks) {
  Table table;
  uint8_t memory[16];
  std::vector<uint32_t> staying;
  for (int i = 0; i < 3; ++i) staying.push_back(must_add(table, memory));
  std::atomic<bool> done{false};
  std::atomic<uint64_t> found{0};
  std::thread reader([&] {
    while (!done) {
      for (const uint32_t stag : staying) ASSERT_TRUE(table.find(stag)) << "after " << found;
      found.fetch_add(1, std::memory_order_relaxed);
    }
  });
  std::vector<uint32_t> stags;
  for (int round = 0; round < 20; ++round) {
    const uint64_t before = found;
    for (int i = 0; i < 20'000; ++i) stags.push_back(must_add(table, memory));
    const size_t full = table.footprint();
    for (const uint32_t stag : stags) ASSERT_EQ(table.remove(stag), 0);
    EXPECT_LT(table.footprint(), full / 2);
    stags.clear();
    while (found == before) std::this_thread::yield();
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace uiw::mem
