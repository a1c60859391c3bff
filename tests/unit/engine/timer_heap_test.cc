// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/timer_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <random>
#include <vector>

namespace uiw::engine {
namespace {

struct Recorded final : Timer {
  Recorded(std::vector<int>& its_log, int its_number) : log(its_log), number(its_number) {}
  void expire() override {
    log.push_back(number);
    if (then) then();
  }
  std::vector<int>& log;
  int number;
  std::function<void()> then;
};

struct TimerHeapTest : testing::Test {
  Recorded& timer() { return timers.emplace_back(log, static_cast<int>(timers.size())); }
  void arm(Timer& timer, core::Nanoseconds deadline) { heap.arm(nullptr, timer, deadline); }
  ~TimerHeapTest() override {
    for (Recorded& each : timers) heap.disarm(each);
  }

  TimerHeap heap;
  std::vector<int> log;
  std::deque<Recorded> timers;
};

TEST_F(TimerHeapTest, ExpiresByDeadline) {
  Recorded &a = timer(), &b = timer(), &c = timer();
  arm(a, 30);
  arm(b, 10);
  arm(c, 20);
  EXPECT_EQ(heap.next_deadline(), 10);
  heap.expire(9);
  EXPECT_TRUE(log.empty());
  heap.expire(20);
  EXPECT_EQ(log, (std::vector{1, 2}));
  EXPECT_TRUE(a.armed());
  EXPECT_FALSE(b.armed());
  EXPECT_EQ(heap.next_deadline(), 30);
}

TEST_F(TimerHeapTest, EqualDeadlinesExpireInTheOrderArmed) {
  for (int i = 0; i < 9; ++i) arm(timer(), 5);
  heap.expire(5);
  EXPECT_EQ(log, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(heap.empty());
}

TEST_F(TimerHeapTest, RearmingReplaces) {
  Recorded &a = timer(), &b = timer();
  arm(a, 10);
  arm(b, 20);
  arm(a, 30);
  heap.expire(20);
  EXPECT_EQ(log, (std::vector{1}));
  heap.expire(30);
  EXPECT_EQ(log, (std::vector{1, 0}));
}

TEST_F(TimerHeapTest, DisarmedTimerNeverExpires) {
  Recorded &a = timer(), &b = timer();
  arm(a, 10);
  arm(b, 10);
  a.then = [&] { heap.disarm(b); };
  heap.expire(10);
  EXPECT_EQ(log, (std::vector{0}));
  heap.disarm(b);  // once more does no harm
  EXPECT_TRUE(heap.empty());
}

TEST_F(TimerHeapTest, ArmingFromExpireWaitsForTheNextTurn) {
  Recorded &a = timer(), &b = timer();
  a.then = [&] { arm(a, 0); };
  arm(a, 0);
  arm(b, 5);
  heap.expire(5);
  EXPECT_EQ(std::count(log.begin(), log.end(), 0), 1);
  EXPECT_TRUE(a.armed());
  a.then = nullptr;
  heap.expire(5);
  heap.expire(5);
  EXPECT_EQ(std::count(log.begin(), log.end(), 0), 2);
  EXPECT_EQ(std::count(log.begin(), log.end(), 1), 1);
}

// Random arming, re-arming, disarming and expiring against a list that is searched.
TEST_F(TimerHeapTest, AgreesWithASortedModel) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    TimerHeap tested;
    std::vector<int> expired, expected;
    std::deque<Recorded> all;
    for (int i = 0; i < 40; ++i) all.emplace_back(expired, i);
    struct Entry {
      core::Nanoseconds deadline;
      int sequence;
      int number;
      bool operator<(const Entry& other) const {
        return std::pair(deadline, sequence) < std::pair(other.deadline, other.sequence);
      }
    };
    std::vector<Entry> model;
    auto forget = [&](int number) {
      std::erase_if(model, [&](const Entry& entry) { return entry.number == number; });
    };
    int sequence = 0;
    core::Nanoseconds now = 0;
    for (int step = 0; step < 400; ++step) {
      const int number = static_cast<int>(random() % all.size());
      switch (random() % 8) {
        case 0:
          tested.disarm(all[number]);
          forget(number);
          break;
        case 1: {
          now += random() % 50;
          tested.expire(now);
          std::sort(model.begin(), model.end());
          while (!model.empty() && model.front().deadline <= now) {
            expected.push_back(model.front().number);
            model.erase(model.begin());
          }
          break;
        }
        default: {
          const core::Nanoseconds deadline = now + random() % 60;
          tested.arm(nullptr, all[number], deadline);
          forget(number);
          model.push_back({deadline, sequence++, number});
        }
      }
      ASSERT_EQ(expired, expected);
      ASSERT_EQ(tested.empty(), model.empty());
      if (!model.empty()) {
        ASSERT_EQ(tested.next_deadline(), std::min_element(model.begin(), model.end())->deadline);
      }
      for (const Recorded& each : all) {
        const bool in_model = std::any_of(model.begin(), model.end(), [&](const Entry& entry) {
          return entry.number == each.number;
        });
        ASSERT_EQ(each.armed(), in_model);
      }
    }
    for (Recorded& each : all) tested.disarm(each);
  }
}

}  // namespace
}  // namespace uiw::engine
