// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
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

}  // namespace
}  // namespace uiw::core
