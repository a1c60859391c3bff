// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace uiw::core {
namespace {

TEST(Processors, AreShortWhenMoreThreadsWantToRun) {
  EXPECT_TRUE(more_run_than("0.20 0.18 0.12 3/80 11206\n", 2));
  EXPECT_FALSE(more_run_than("0.20 0.18 0.12 2/80 11206\n", 2));
  EXPECT_FALSE(more_run_than("0.20 0.18 0.12 1/80 11206\n", 2));
  EXPECT_TRUE(more_run_than("120.20 100.18 99.12 130/8000 4000000\n", 128));
  EXPECT_FALSE(more_run_than("120.20 100.18 99.12 13/8000 4000000\n", 128));
}

TEST(Processors, AreNotShortWhereNothingIsKnown) {
  for (const char* text : {"", " ", "   ", "0.20", "0.20 0.18 0.12", "0.20 0.18 0.12 ",
                           "a b c d/e f", "0.20 0.18 0.12 9", "0.20 0.18 0.12 9 80",
                           "0.20 0.18 0.12 /80", "0.20 0.18 0.12 99999999999/80"})
    EXPECT_FALSE(more_run_than(text, 2)) << text;
}

TEST(Processors, AreShortWhenThisProcessTakesMoreThanThereAre) {
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  for (unsigned i = 0; i <= std::thread::hardware_concurrency(); ++i)
    busy.emplace_back([&] {
      while (!over) {
      }
    });
  bool found = false;
  for (int i = 0; i < 1000 && !found; ++i) {
    sched_yield();
    found = processors_are_short();
  }
  EXPECT_TRUE(found);
  over = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(RunTime, IsReadFromTheKernelsLine) {
  const auto time = parse_run_time("9571882 120034 17\n");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->ran, 9571882);
  EXPECT_EQ(time->waited, 120034);
  for (const char* text : {"", "\n", " ", "1", "1 ", "1 2", "1\n2 3", "a 2 3", "1 b 3", " 1 2 3",
                           "99999999999999999999 2 3", "1 99999999999999999999 3"})
    EXPECT_FALSE(parse_run_time(text)) << text;
}

TEST(RunTime, GrowsWhileTheThreadRunsAndWhileAnotherHasItsProcessor) {
  if (!run_time()) GTEST_SKIP() << "this kernel does not say (CONFIG_SCHED_INFO)";
  std::atomic<bool> over{false};
  std::atomic<unsigned> had_to_wait{0};
  // One more thread than processors, each of which always wants to run: some have to wait.
  std::vector<std::thread> busy;
  for (unsigned i = 0; i <= std::thread::hardware_concurrency(); ++i)
    busy.emplace_back([&] {
      bool counted = false;
      while (!over) {
        const RunTime time = run_time().value_or(RunTime{});
        if (time.ran > 0 && time.waited > 0 && !std::exchange(counted, true)) ++had_to_wait;
      }
    });
  while (had_to_wait < 2) sched_yield();
  over = true;
  for (std::thread& thread : busy) thread.join();
}

}  // namespace
}  // namespace uiw::core
