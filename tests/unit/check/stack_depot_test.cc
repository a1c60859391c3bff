// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/stack_depot.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace uiw::check {
namespace {

Backtrace calls_from(uintptr_t address) {
  return {.frames = {0x1000, address}, .count = 2};
}

class ADepot : public testing::Test {
 protected:
  const std::unique_ptr<StackDepot> depot_ = std::make_unique<StackDepot>();
};

TEST_F(ADepot, KeepsEachDifferentOneOnce) {
  const uint32_t one = depot_->number_of(calls_from(1));
  const uint32_t other = depot_->number_of(calls_from(2));
  EXPECT_NE(one, 0u);
  EXPECT_NE(other, one);
  EXPECT_EQ(depot_->number_of(calls_from(1)), one);
  EXPECT_TRUE(depot_->at(one) == calls_from(1));
  EXPECT_TRUE(depot_->at(other) == calls_from(2));
}

TEST_F(ADepot, TellsThemApartByFramesNumberAndInterpreter) {
  const PythonStack python;
  Backtrace shorter = calls_from(1), in_python = calls_from(1);
  shorter.count = 1;
  in_python.python = &python;
  const std::set<uint32_t> numbers = {depot_->number_of(calls_from(1)), depot_->number_of(shorter),
                                      depot_->number_of(in_python)};
  EXPECT_EQ(numbers.size(), 3u);
}

TEST_F(ADepot, ThatIsFullKeepsNoMoreAndStillKnowsWhatItHas) {
  for (uintptr_t i = 1; i <= StackDepot::kMost; ++i)
    ASSERT_NE(depot_->number_of(calls_from(i)), 0u) << i;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(depot_->number_of(calls_from(StackDepot::kMost + 1)), 0u);
  for (const uintptr_t i : {uintptr_t{1}, uintptr_t{StackDepot::kMost}})
    EXPECT_TRUE(depot_->at(depot_->number_of(calls_from(i))) == calls_from(i));
}

TEST_F(ADepot, GivesThreadsTheSameNumbers) {
  constexpr uintptr_t kStacks = 2000;
  std::vector<std::vector<uint32_t>> numbers(4);
  std::vector<std::thread> threads;
  for (auto& mine : numbers)
    threads.emplace_back([&mine, this] {
      for (uintptr_t i = 1; i <= kStacks; ++i) {
        mine.push_back(depot_->number_of(calls_from(i)));
        ASSERT_TRUE(depot_->at(mine.back()) == calls_from(i)) << i;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : numbers) EXPECT_EQ(each, numbers[0]);
}

TEST_F(ADepot, GoesOnInAFork) {
  const uint32_t before = depot_->number_of(calls_from(1));
  const pid_t child = fork();
  if (child == 0) {
    const bool has_it = depot_->number_of(calls_from(1)) == before;
    const uint32_t its_own = depot_->number_of(calls_from(2));
    _exit(has_it && depot_->at(its_own) == calls_from(2) ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace uiw::check
