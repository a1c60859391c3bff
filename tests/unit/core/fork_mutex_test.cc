// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/fork_mutex.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace uiw::core {
namespace {

template <class Mutex>
class MutexTest : public testing::Test {};
using Mutexes = testing::Types<ForkMutex, QuietMutex>;
TYPED_TEST_SUITE(MutexTest, Mutexes);

TYPED_TEST(MutexTest, OneThreadHasIt) {
  TypeParam mutex;
  constexpr int kThreads = 4, kRounds = 20000;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::lock_guard hold(mutex);
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kRounds);
}

bool is_free_for_others(ForkMutex& mutex) {
  bool took = false;
  std::thread([&] {
    took = !mutex.is_mine();
    if (!took) return;
    mutex.lock();
    mutex.unlock();
  }).join();
  return took;
}

TEST(ForkMutex, AForkTakesItAndGivesItBack) {
  ForkMutex mutex;
  mutex.before_fork();
  EXPECT_TRUE(mutex.is_mine());
  EXPECT_FALSE(mutex.is_inner());
  mutex.in_parent();
  EXPECT_FALSE(mutex.is_mine());
  EXPECT_TRUE(is_free_for_others(mutex));
}

TEST(ForkMutex, WhoHoldsItMayForkAndHoldsItStill) {
  ForkMutex mutex;
  mutex.lock();
  for (int i = 0; i < 2; ++i) mutex.before_fork();  // one handler interrupts another
  EXPECT_TRUE(mutex.is_inner());
  for (int i = 0; i < 2; ++i) {
    mutex.in_parent();
    EXPECT_TRUE(mutex.is_mine());
  }
  EXPECT_FALSE(mutex.is_inner());
  mutex.unlock();
  EXPECT_TRUE(is_free_for_others(mutex));
}

// A fork between another one's handlers.
TEST(ForkMutex, AForkWithinAForkLeavesItToThat) {
  ForkMutex mutex;
  mutex.before_fork();
  mutex.before_fork();
  mutex.in_parent();
  EXPECT_TRUE(mutex.is_mine());
  mutex.in_parent();
  EXPECT_FALSE(mutex.is_mine());
}

TEST(ForkMutex, TheChildOfAHandlerFindsItFree) {
  ForkMutex mutex;
  mutex.lock();
  mutex.before_fork();
  mutex.in_child();
  EXPECT_FALSE(mutex.is_mine());
  mutex.lock();
  mutex.unlock();
  mutex.unlock();  // of what was interrupted, should the handler return there
  EXPECT_TRUE(is_free_for_others(mutex));
}

TEST(QuietMutex, SignalsWait) {
  static volatile sig_atomic_t came;
  came = 0;
  struct sigaction action {
  }, before;
  action.sa_handler = [](int) { came = 1; };
  sigaction(SIGUSR1, &action, &before);
  QuietMutex mutex, other;
  mutex.lock();
  raise(SIGUSR1);
  { const std::lock_guard within(other); }
  EXPECT_EQ(came, 0);
  mutex.unlock();
  EXPECT_EQ(came, 1);
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace uiw::core
