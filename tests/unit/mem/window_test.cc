// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Memory windows: what is bound to what, who may use it, and when it ends.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <thread>
#include <vector>

#include "mem/table.h"

namespace uiw::mem {
namespace {

constexpr size_t kMany = 1u << 20;
constexpr uint32_t kPd = 5, kOtherPd = 6;
constexpr Stream kMine{kPd, 100}, kTheirs{kPd, 101}, kForeign{kOtherPd, 102};
constexpr uint32_t kBindable = kLocalWrite | kMwBind;
constexpr uint64_t kStart = 0x10000, kLength = 100;

uint32_t next_key(uint32_t stag) {
  return (stag & ~kKeyMask) | ((stag + 1) & kKeyMask);
}

class Windows : public testing::Test {
 protected:
  uint32_t region(uint32_t access = kBindable, uint32_t pd = kPd) {
    return *table.add(pd, memory, kStart, kLength, access, kMany);
  }
  uint32_t window(WindowType type = WindowType::kType2, uint32_t pd = kPd) {
    return *table.add_window(pd, type, kMany);
  }
  // The window's next STag, over all of the region if nothing else is said.
  static Binding binding(uint32_t window, uint32_t region,
                         uint32_t access = kRemoteWrite | kRemoteRead, uint64_t start = kStart,
                         uint64_t length = kLength) {
    return {window, next_key(window), region, access, start, length};
  }
  Fault remote(const Stream& stream, uint32_t stag, uint64_t to, uint64_t length, uint32_t needed) {
    const RegionRef found = table.find(stag);
    EXPECT_TRUE(found);
    return found ? check_remote(*found, stream, to, length, needed) : Fault::kBounds;
  }

  Table table;
  uint8_t memory[kLength];
};

TEST_F(Windows, AreNotValidUntilBound) {
  const uint32_t mw = window();
  EXPECT_NE(index_of(mw), 0u);
  EXPECT_FALSE(table.find(mw));
  EXPECT_EQ(table.remove(mw), EINVAL);  // no region
  EXPECT_EQ(table.invalidate(kMine, mw), Invalidation::kNotPossible);
  EXPECT_EQ(table.windows(), 1u);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.remove_window(mw), 0);
  EXPECT_EQ(table.remove_window(mw), EINVAL);
  EXPECT_EQ(table.windows(), 0u);
}

TEST_F(Windows, ShowPartOfARegion) {
  const uint32_t mr = region(), mw = window();
  const Binding wanted = binding(mw, mr, kRemoteWrite, kStart + 10, 20);
  ASSERT_EQ(table.bind(kMine, wanted), 0);
  EXPECT_FALSE(table.find(mw));  // the key before the binding
  const RegionRef found = table.find(wanted.stag);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->memory, memory + 10);
  EXPECT_EQ(found->start, kStart + 10);
  EXPECT_EQ(found->length, 20u);
  EXPECT_EQ(found->access, uint32_t{kRemoteWrite});
  EXPECT_EQ(remote(kMine, wanted.stag, kStart + 10, 20, kRemoteWrite), Fault::kNone);
  EXPECT_EQ(remote(kMine, wanted.stag, kStart + 10, 20, kRemoteRead), Fault::kRights);
  EXPECT_EQ(remote(kMine, wanted.stag, kStart + 9, 1, kRemoteWrite), Fault::kBounds);
  EXPECT_EQ(remote(kMine, wanted.stag, kStart + 29, 2, kRemoteWrite), Fault::kBounds);
  EXPECT_EQ(remote(kMine, wanted.stag, ~0ull, 2, kRemoteWrite), Fault::kWrap);
}

TEST_F(Windows, ZeroBasedOnesCountFromTheirBeginning) {
  const uint32_t mr = region(), mw = window();
  const Binding wanted = binding(mw, mr, kRemoteRead | kZeroBased, kStart + 10, 20);
  ASSERT_EQ(table.bind(kMine, wanted), 0);
  EXPECT_EQ(table.find(wanted.stag)->memory, memory + 10);
  EXPECT_EQ(remote(kMine, wanted.stag, 0, 20, kRemoteRead), Fault::kNone);
  EXPECT_EQ(remote(kMine, wanted.stag, 1, 20, kRemoteRead), Fault::kBounds);
  EXPECT_EQ(remote(kMine, wanted.stag, kStart + 10, 1, kRemoteRead), Fault::kBounds);
}

// RFC 5041 8.2: scope of a stream, scope of a protection domain.
TEST_F(Windows, OfType2BelongToOneStreamThoseOfType1ToTheDomain) {
  const uint32_t mr = region(), one = window(WindowType::kType1), two = window();
  ASSERT_EQ(table.bind(kMine, binding(one, mr)), 0);
  ASSERT_EQ(table.bind(kMine, binding(two, mr)), 0);
  EXPECT_EQ(remote(kTheirs, next_key(one), kStart, 1, kRemoteWrite), Fault::kNone);
  EXPECT_EQ(remote(kTheirs, next_key(two), kStart, 1, kRemoteWrite), Fault::kProtectionDomain);
  EXPECT_EQ(remote(kMine, next_key(two), kStart, 1, kRemoteWrite), Fault::kNone);
  EXPECT_EQ(remote(kForeign, next_key(one), kStart, 1, kRemoteWrite), Fault::kProtectionDomain);
  EXPECT_EQ(remote(kForeign, next_key(two), kStart, 1, kRemoteWrite), Fault::kProtectionDomain);
}

TEST_F(Windows, HaveNoLocalKey) {
  const uint32_t mr = region(), mw = window();
  ASSERT_EQ(table.bind(kMine, binding(mw, mr)), 0);
  EXPECT_EQ(check(*table.find(next_key(mw)), kPd, kStart, 1, 0), Fault::kRights);
  EXPECT_EQ(check(*table.find(mr), kPd, kStart, 1, 0), Fault::kNone);
}

TEST_F(Windows, BindOnlyWhatTheRegionAllows) {
  const uint32_t mw = window();
  const auto try_to = [&](uint32_t mr_access, uint32_t access) {
    const uint32_t mr = region(mr_access);
    const int result = table.bind(kMine, binding(mw, mr, access));
    if (result == 0) {
      EXPECT_EQ(table.invalidate(kMine, next_key(mw)), Invalidation::kDone);
    }
    EXPECT_EQ(table.remove(mr), 0);
    return result;
  };
  EXPECT_EQ(try_to(kLocalWrite | kRemoteWrite, kRemoteWrite), EACCES);
  EXPECT_EQ(try_to(kMwBind, kRemoteWrite), EACCES);
  EXPECT_EQ(try_to(kMwBind, kRemoteAtomic), EACCES);
  EXPECT_EQ(try_to(kMwBind, kRemoteRead), 0);
  EXPECT_EQ(try_to(kMwBind, 0), 0);
  EXPECT_EQ(try_to(kBindable, kRemoteWrite | kRemoteRead | kRemoteAtomic | kZeroBased), 0);
  EXPECT_EQ(try_to(kBindable, kRemoteRead | kLocalWrite), 0);  // as pyverbs asks
  EXPECT_EQ(try_to(kBindable, kRemoteRead | kMwBind), EINVAL);
}

TEST_F(Windows, BindOnlyWhatIsThere) {
  const uint32_t mr = region(), mw = window(), other = window();
  EXPECT_EQ(table.bind(kMine, binding(mw, mr, kRemoteRead, kStart - 1, 2)), EINVAL);
  EXPECT_EQ(table.bind(kMine, binding(mw, mr, kRemoteRead, kStart, kLength + 1)), EINVAL);
  EXPECT_EQ(table.bind(kMine, binding(mw, mr, kRemoteRead, ~0ull, 2)), EINVAL);
  EXPECT_EQ(table.bind(kMine, binding(mw, mr ^ 1)), EINVAL);
  EXPECT_EQ(table.bind(kMine, binding(mw, 0)), EINVAL);
  EXPECT_EQ(table.bind(kMine, binding(mw, other)), EINVAL);  // a window of a window
  EXPECT_EQ(table.bind(kMine, binding(mr, mr)), EINVAL);     // a region as a window
  EXPECT_EQ(table.bind(kMine, binding(mw ^ 0x100, mr)), EINVAL);
  Binding wrong_index = binding(mw, mr);
  wrong_index.stag ^= 0x100;
  EXPECT_EQ(table.bind(kMine, wrong_index), EINVAL);
  EXPECT_EQ(table.bind(kForeign, binding(mw, mr)), EPERM);
  EXPECT_EQ(table.bind(kMine, binding(mw, region(kBindable, kOtherPd))), EPERM);
  EXPECT_EQ(table.remove(mr), 0);  // nothing was bound after all
}

TEST_F(Windows, OfType2AreBoundOnce) {
  const uint32_t mr = region(), mw = window();
  ASSERT_EQ(table.bind(kMine, binding(mw, mr)), 0);
  const uint32_t bound = next_key(mw);
  EXPECT_EQ(table.bind(kMine, binding(bound, mr)), EBUSY);
  EXPECT_EQ(table.bind(kTheirs, binding(bound, mr)), EBUSY);
  EXPECT_TRUE(table.find(bound));
  EXPECT_EQ(table.invalidate(kMine, bound), Invalidation::kDone);
  EXPECT_FALSE(table.find(bound));
  EXPECT_EQ(table.invalidate(kMine, bound), Invalidation::kNotPossible);
  // Any key, also the one it had; another queue pair.
  EXPECT_EQ(table.bind(kTheirs, {bound, bound, mr, kRemoteRead, kStart, 1}), 0);
  EXPECT_EQ(remote(kTheirs, bound, kStart, 1, kRemoteRead), Fault::kNone);
}

TEST_F(Windows, OfType1AreMovedAndUnboundByBinding) {
  const uint32_t first = region(), second = region(), mw = window(WindowType::kType1);
  ASSERT_EQ(table.bind(kMine, binding(mw, first)), 0);
  const uint32_t bound = next_key(mw), moved = next_key(bound);
  EXPECT_EQ(table.remove(first), EBUSY);
  ASSERT_EQ(table.bind(kMine, binding(bound, second)), 0);
  EXPECT_FALSE(table.find(bound));
  EXPECT_TRUE(table.find(moved));
  EXPECT_EQ(table.remove(first), 0);
  EXPECT_EQ(table.remove(second), EBUSY);
  EXPECT_EQ(table.bind(kMine, binding(moved, 0, 0, 0, 0)), 0);
  EXPECT_FALSE(table.find(moved));
  EXPECT_EQ(table.remove(second), 0);
}

// A binding that is refused leaves a type 1 window as it was.
TEST_F(Windows, ARefusedMoveChangesNothing) {
  const uint32_t mr = region(), closed = region(kLocalWrite), mw = window(WindowType::kType1);
  ASSERT_EQ(table.bind(kMine, binding(mw, mr)), 0);
  EXPECT_EQ(table.bind(kMine, binding(next_key(mw), closed)), EACCES);
  EXPECT_TRUE(table.find(next_key(mw)));
  EXPECT_EQ(table.remove(closed), 0);
}

// RFC 5040 5.3, 8.1.1(7).
TEST_F(Windows, OnlyTheirOwnStreamInvalidatesThem) {
  const uint32_t mr = region(), one = window(WindowType::kType1), two = window();
  ASSERT_EQ(table.bind(kMine, binding(one, mr)), 0);
  ASSERT_EQ(table.bind(kMine, binding(two, mr)), 0);
  EXPECT_EQ(table.invalidate(kMine, 0), Invalidation::kNotPossible);
  EXPECT_EQ(table.invalidate(kMine, mr), Invalidation::kNotPossible);
  EXPECT_EQ(table.invalidate(kForeign, mr), Invalidation::kNotAssociated);
  EXPECT_EQ(table.invalidate(kMine, next_key(one)), Invalidation::kNotPossible);
  EXPECT_EQ(table.invalidate(kForeign, next_key(one)), Invalidation::kNotAssociated);
  EXPECT_EQ(table.invalidate(kTheirs, next_key(two)), Invalidation::kNotAssociated);
  EXPECT_EQ(table.invalidate(kForeign, next_key(two)), Invalidation::kNotAssociated);
  EXPECT_EQ(table.invalidate(kMine, two), Invalidation::kNotPossible);  // a stale key
  for (uint32_t stag : {mr, next_key(one), next_key(two)}) EXPECT_TRUE(table.find(stag));
  EXPECT_EQ(table.invalidate(kMine, next_key(two)), Invalidation::kDone);
}

TEST_F(Windows, ARegionWithWindowsIsBusy) {
  const uint32_t mr = region(), one = window(), two = window();
  ASSERT_EQ(table.bind(kMine, binding(one, mr)), 0);
  ASSERT_EQ(table.bind(kTheirs, binding(two, mr)), 0);
  EXPECT_EQ(table.remove(mr), EBUSY);
  EXPECT_EQ(table.change_access(mr, 0), EBUSY);
  EXPECT_TRUE(table.find(mr));
  EXPECT_EQ(table.invalidate(kMine, next_key(one)), Invalidation::kDone);
  EXPECT_EQ(table.remove(mr), EBUSY);
  EXPECT_EQ(table.remove_window(two), 0);
  EXPECT_EQ(table.remove(mr), 0);
}

TEST_F(Windows, TheEndOfAStreamEndsItsBindings) {
  const uint32_t mr = region();
  std::vector<uint32_t> mine, theirs;
  for (int i = 0; i < 5; ++i) {
    mine.push_back(window());
    ASSERT_EQ(table.bind(kMine, binding(mine.back(), mr)), 0);
    theirs.push_back(window());
    ASSERT_EQ(table.bind(kTheirs, binding(theirs.back(), mr)), 0);
  }
  const uint32_t shared = window(WindowType::kType1);
  ASSERT_EQ(table.bind(kMine, binding(shared, mr)), 0);
  EXPECT_EQ(table.remove_window(mine[2]), 0);
  mine.erase(mine.begin() + 2);
  EXPECT_EQ(table.invalidate(kMine, next_key(mine[0])), Invalidation::kDone);
  table.end_stream(kMine.id);
  for (uint32_t mw : mine) EXPECT_FALSE(table.find(next_key(mw)));
  for (uint32_t mw : theirs) EXPECT_TRUE(table.find(next_key(mw)));
  EXPECT_TRUE(table.find(next_key(shared)));
  EXPECT_EQ(table.bind(kTheirs, binding(next_key(mine[1]), mr)), 0);  // free for another
  table.end_stream(kTheirs.id);
  EXPECT_EQ(table.remove_window(shared), 0);
  EXPECT_EQ(table.remove(mr), 0);
}

TEST_F(Windows, EndAtTheLimit) {
  std::vector<uint32_t> stags;
  for (int i = 0; i < 3; ++i) stags.push_back(*table.add_window(kPd, WindowType::kType2, 3));
  EXPECT_EQ(table.add_window(kPd, WindowType::kType2, 3).error(), ENOMEM);
  EXPECT_TRUE(table.add(kPd, memory, 0, 1, 0, 1));  // regions have a limit of their own
  EXPECT_EQ(table.remove_window(stags[0]), 0);
  EXPECT_TRUE(table.add_window(kPd, WindowType::kType1, 3));
}

// SE-09: the index is as hard to guess as a region's; keys chosen here do not count up.
TEST_F(Windows, StagsAreHardToPredict) {
  std::set<uint32_t> steps, keys;
  uint32_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint32_t mw = window();
    steps.insert(mw - before);
    before = mw;
  }
  EXPECT_GT(steps.size(), 990u);
  uint32_t stag = before;
  steps.clear();
  for (int i = 0; i < 1000; ++i) {
    const uint32_t other = *table.other_key(stag);
    EXPECT_EQ(index_of(other), index_of(stag));
    EXPECT_NE(other, stag);
    steps.insert(other - stag);
    keys.insert(other);
    stag = other;
  }
  EXPECT_GT(keys.size(), 200u);
  EXPECT_GT(steps.size(), 200u);
}

// An index is not given out again soon, whatever keys it had.
TEST_F(Windows, IndicesAreNotReusedSoon) {
  std::vector<uint32_t> gone;
  for (int i = 0; i < 3000; ++i) {
    const uint32_t stag = i % 2 ? window() : region();
    for (size_t back = 1; back <= std::min<size_t>(1024, gone.size()); ++back)
      ASSERT_NE(gone[gone.size() - back], index_of(stag));
    gone.push_back(index_of(stag));
    ASSERT_EQ(i % 2 ? table.remove_window(stag) : table.remove(stag), 0);
  }
}

TEST_F(Windows, InvalidationWaitsForTheCopyThatIsUnderWay) {
  const uint32_t mr = region(), mw = window();
  ASSERT_EQ(table.bind(kMine, binding(mw, mr)), 0);
  RegionRef copying = table.find(next_key(mw));
  std::atomic<bool> done{false};
  std::thread invalidator([&] {
    EXPECT_EQ(table.invalidate(kMine, next_key(mw)), Invalidation::kDone);
    done = true;
  });
  while (table.find(next_key(mw))) std::this_thread::yield();
  EXPECT_FALSE(done);
  copying.reset();
  invalidator.join();
}

// SE-06 for windows: one thread binds and invalidates, the others write through whatever STag is
// valid. After an invalidation the memory is the owner's alone: ThreadSanitizer would see any
// access that is not ordered with its own, and so would the owner.
TEST_F(Windows, InvalidationDuringAStormOfWrites) {
  constexpr int kRounds = 1500, kWriters = 2;
  const uint32_t mr = region(), mw = window();
  std::atomic<uint32_t> stag{mw};
  std::atomic<uint64_t> hits{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      while (!over) {
        const RegionRef found = table.find(stag.load(std::memory_order_relaxed));
        if (!found || check_remote(*found, kMine, kStart, 8, kRemoteWrite) != Fault::kNone)
          continue;
        found->memory[w] = 0xee;
        hits.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  uint32_t now = mw;
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t next = next_key(now);
    ASSERT_EQ(table.bind(kMine, {now, next, mr, kRemoteWrite, kStart, 8}), 0);
    stag = now = next;
    if (round % 16 == 0) {  // now and then let somebody get hold of it
      const uint64_t before = hits;
      while (hits == before) std::this_thread::yield();
    }
    if (round % 3 == 0) {
      table.end_stream(kMine.id);
    } else {
      ASSERT_EQ(table.invalidate(kMine, now), Invalidation::kDone);
    }
    for (int w = 0; w < kWriters; ++w) memory[w] = 1;
    for (int spin = 0; spin < 20; ++spin)
      for (int w = 0; w < kWriters; ++w) ASSERT_EQ(memory[w], 1);
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(table.remove(mr), 0);
}

// Two queue pairs want the same window: exactly one gets it.
TEST_F(Windows, ABindingHasOneWinner) {
  const uint32_t mr = region();
  for (int round = 0; round < 100; ++round) {
    const uint32_t mw = window();
    std::atomic<int> ready{0}, won{0};
    std::vector<std::thread> rivals;
    for (const Stream& stream : {kMine, kTheirs}) {
      rivals.emplace_back([&, stream] {
        ready.fetch_add(1);
        while (ready < 2) std::this_thread::yield();
        if (table.bind(stream, binding(mw, mr)) == 0) won.fetch_add(1);
      });
    }
    for (std::thread& rival : rivals) rival.join();
    ASSERT_EQ(won, 1);
    ASSERT_EQ(table.remove_window(mw), 0);
  }
}

TEST_F(Windows, RightsOfARegionComeAndGo) {
  const uint32_t mr = region(kLocalWrite | kRemoteRead);
  EXPECT_EQ(table.change_access(mr, kLocalWrite | kRemoteWrite), 0);
  EXPECT_EQ(remote(kMine, mr, kStart, 1, kRemoteRead), Fault::kRights);
  EXPECT_EQ(remote(kMine, mr, kStart, 1, kRemoteWrite), Fault::kNone);
  EXPECT_EQ(table.change_access(mr ^ 1, 0), EINVAL);
  EXPECT_EQ(table.change_access(window(), 0), EINVAL);
  RegionRef copying = table.find(mr);
  std::atomic<bool> done{false};
  std::thread changer([&] {
    EXPECT_EQ(table.change_access(mr, 0), 0);
    done = true;
  });
  while (table.find(mr)) std::this_thread::yield();
  EXPECT_FALSE(done);
  copying.reset();
  changer.join();
  EXPECT_EQ(remote(kMine, mr, kStart, 1, kRemoteWrite), Fault::kRights);
  EXPECT_EQ(table.remove(mr), 0);
}

}  // namespace
}  // namespace uiw::mem
