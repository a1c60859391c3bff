// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a program may rely on holds under each of many seeds; what it may not is broken under some.
#include "shake/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/tuning.h"

namespace uiw::shake {
namespace {

using core::tuning::kLongestHold;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kSeeds = 200;

ibv_wc completion(uint64_t wr_id, uint32_t qp_num = 1, ibv_wc_opcode opcode = IBV_WC_SEND) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.qp_num = qp_num;
  wc.opcode = opcode;
  return wc;
}

std::vector<uint64_t> poll(Completions& completions, int count, core::Nanoseconds now) {
  std::vector<ibv_wc> list(static_cast<size_t>(count));
  const int given = completions.poll(count, list.data(), now);
  std::vector<uint64_t> ids;
  for (int i = 0; i < given; ++i) ids.push_back(list[static_cast<size_t>(i)].wr_id);
  return ids;
}

// As programs empty a queue: until a poll gives fewer than it was asked for.
std::vector<uint64_t> empty(Completions& completions, core::Nanoseconds now) {
  std::vector<uint64_t> all;
  for (;;) {
    const std::vector<uint64_t> some = poll(completions, 4, now);
    all.insert(all.end(), some.begin(), some.end());
    if (some.size() < 4) return all;
  }
}

TEST(ShakenCompletions, WhoPollsOnGetsAllInTheOrderOfEachWorkQueueAndInTime) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Completions completions({seed}, 1);
    Lane sends(1), receives(2), others(3);
    Lane* const lanes[] = {&sends, &receives, &others};
    std::map<uint32_t, std::vector<uint64_t>> got;
    core::Nanoseconds now = 0;
    for (uint64_t i = 0; i < 300; ++i, now += 10 * core::kMicrosecond) {
      completions.add(*lanes[i % 3], completion(i), now);
      for (const uint64_t id : poll(completions, 8, now)) got[id % 3].push_back(id);
    }
    // A poll gives one at least when it gives few.
    now += kLongestHold;
    for (int i = 0; i < 300; ++i)
      for (const uint64_t id : poll(completions, 8, now)) got[id % 3].push_back(id);
    for (uint32_t lane = 0; lane < 3; ++lane) {
      EXPECT_EQ(got[lane].size(), 100u) << seed;
      EXPECT_TRUE(std::ranges::is_sorted(got[lane])) << seed;
    }
  }
}

TEST(ShakenCompletions, APollBehindTheArmingFindsAllThatCameBefore) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Completions completions({seed}, 1);
    Lane sends(1), receives(2);
    for (uint64_t i = 0; i < 10; ++i) completions.add(i % 2 ? sends : receives, completion(i), 0);
    completions.arm(false);
    EXPECT_EQ(empty(completions, 0).size(), 10u) << seed;
  }
}

TEST(ShakenCompletions, APollBehindAnEventFindsTheOneThatItTellsOf) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Completions completions({seed}, 1);
    Lane sends(1), receives(2);
    completions.add(sends, completion(1), 0);
    completions.arm(false);
    completions.add(receives, completion(2), 0);
    EXPECT_THAT(empty(completions, 0), testing::UnorderedElementsAre(1, 2)) << seed;
  }
}

TEST(ShakenCompletions, OfSolicitedEventsItIsNotKnownWhichTheyTellOf) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Completions completions({seed}, 1);
    Lane receives(2);
    completions.arm(true);
    for (uint64_t i = 1; i <= 3; ++i) {
      completions.add(receives, completion(i), 0);
      EXPECT_THAT(empty(completions, 0), ElementsAre(i)) << seed;
    }
  }
}

TEST(ShakenCompletions, WhenAllIsToBeShownItIsUntilAPollHasEmptiedTheQueue) {
  bool held = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Completions completions({seed}, 1);
    Lane sends(1);
    completions.add(sends, completion(1), 0);
    completions.show_all();
    completions.add(sends, completion(2), 0);
    EXPECT_THAT(empty(completions, 0), ElementsAre(1, 2)) << seed;
    completions.add(sends, completion(3), 0);
    held = held || empty(completions, 0).empty();
  }
  EXPECT_TRUE(held);
}

// How many of the seeds do it.
template <class Run>
int seeds_that(Run run) {
  int count = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) count += run(seed) ? 1 : 0;
  return count;
}

TEST(ShakenCompletions, ManySeedsHoldACompletionThatNobodyIsOwed) {
  EXPECT_GT(seeds_that([](uint64_t seed) {
              Completions completions({seed}, 1);
              Lane sends(1);
              completions.add(sends, completion(1), 1);
              return poll(completions, 4, 1).empty();
            }),
            60);
}

TEST(ShakenCompletions, ManySeedsChangeTheOrderOfWorkQueues) {
  EXPECT_GT(seeds_that([](uint64_t seed) {
              Completions completions({seed}, 1);
              Lane sends(1), receives(2);
              completions.add(sends, completion(1), 0);
              completions.add(receives, completion(2), 0);
              std::vector<uint64_t> all;
              for (core::Nanoseconds now = 0; all.size() < 2; now += core::kMicrosecond)
                for (const uint64_t id : poll(completions, 4, now)) all.push_back(id);
              return all.front() == 2;
            }),
            40);
}

TEST(ShakenCompletions, ManySeedsGiveFewerThanThereAre) {
  EXPECT_GT(seeds_that([](uint64_t seed) {
              Completions completions({seed}, 1);
              Lane sends(1);
              for (uint64_t i = 0; i < 4; ++i) completions.add(sends, completion(i), 0);
              const size_t size = poll(completions, 4, kLongestHold).size();
              EXPECT_GE(size, 1u);
              return size < 4;
            }),
            60);
}

TEST(ShakenCompletions, WithoutOrderThoseOfAllWorkQueuesComeInTheirOrder) {
  constexpr uint32_t kOrder = uint32_t{1} << static_cast<unsigned>(core::Liberty::kOrder);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Completions completions({seed, kOrder}, 1);
    Lane sends(1), receives(2), others(3);
    Lane* const lanes[] = {&sends, &receives, &others};
    std::vector<uint64_t> got;
    core::Nanoseconds now = 0;
    for (uint64_t i = 0; i < 300; ++i, now += 10 * core::kMicrosecond) {
      if (i % 50 == 49) completions.arm(false);
      completions.add(*lanes[i % 3], completion(i), now);
      for (const uint64_t id : poll(completions, 8, now)) got.push_back(id);
      // What came behind the arming has its event, so it is there, and all before it.
      if (i % 50 == 49) {
        for (const uint64_t id : empty(completions, now)) got.push_back(id);
        EXPECT_EQ(got.size(), i + 1) << seed;
      }
    }
    EXPECT_EQ(got.size(), 300u) << seed;
    EXPECT_TRUE(std::ranges::is_sorted(got)) << seed;
  }
}

std::vector<std::pair<core::Nanoseconds, uint64_t>> story(uint64_t seed) {
  Completions completions({seed}, 4);
  Lane sends(1), receives(2);
  std::vector<std::pair<core::Nanoseconds, uint64_t>> told;
  for (core::Nanoseconds now = 0; now < 400 * core::kMicrosecond; now += core::kMicrosecond) {
    const auto nth = static_cast<uint64_t>(now / core::kMicrosecond);
    if (nth % 3 == 0) completions.add(nth % 2 ? sends : receives, completion(nth), now);
    for (const uint64_t id : poll(completions, 2, now)) told.emplace_back(now, id);
  }
  return told;
}

TEST(ShakenCompletions, TheSameSeedTellsTheSameStoryTwentyTimes) {
  const auto first = story(17);
  EXPECT_GT(first.size(), 50u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(story(17), first);
  EXPECT_NE(story(18), first);
}

TEST(ShakenCompletions, WhatIsForgottenIsNotGivenAndTheRestIsCounted) {
  Completions completions({1}, 1);
  Lane sends(1), receives(2);
  ibv_wc failed = completion(3, 1, IBV_WC_RECV);
  failed.status = IBV_WC_WR_FLUSH_ERR;
  completions.add(sends, completion(1), 0);
  completions.add(receives, completion(2, 1, IBV_WC_RECV), 0);
  completions.add(receives, failed, 0);
  EXPECT_EQ(completions.waiting().all, 3u);
  EXPECT_EQ(completions.waiting().messages, 1u);
  EXPECT_THAT(completions.forget(receives), ElementsAre(2u, 3u));
  EXPECT_EQ(completions.waiting().all, 1u);
  completions.arm(false);
  EXPECT_THAT(empty(completions, 0), ElementsAre(1));
  EXPECT_THAT(empty(completions, kLongestHold), IsEmpty());
}

}  // namespace
}  // namespace uiw::shake
