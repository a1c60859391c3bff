// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/own_stack.h"

#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>

namespace uiw::core::test {
namespace {

constexpr size_t kWanted = 160 * 1024, kStack = 1024 * 1024;

// Touches so much of the stack.
void touch(void* argument) {
  volatile char room[kWanted];
  for (size_t i = 0; i < sizeof room; i += 1024) room[i] = 1;
  *static_cast<int*>(argument) += room[0];
}

struct Outcome {
  size_t left = 0;
  bool ran = false;
  int touched = 0;
};

void* on_small_stack(void* argument) {
  auto& outcome = *static_cast<Outcome*>(argument);
  outcome.left = stack_left();
  outcome.ran = run_on_own_stack(kStack, touch, &outcome.touched);
  return nullptr;
}

TEST(OwnStack, ASmallThreadHasRoomThere) {
  const auto kSmall = std::max<size_t>(64 * 1024, PTHREAD_STACK_MIN);  // arm64 has that of 128 KiB
  pthread_attr_t attributes;
  ASSERT_EQ(0, pthread_attr_init(&attributes));
  ASSERT_EQ(0, pthread_attr_setstacksize(&attributes, kSmall));
  Outcome outcome;
  pthread_t thread;
  ASSERT_EQ(0, pthread_create(&thread, &attributes, on_small_stack, &outcome));
  ASSERT_EQ(0, pthread_join(thread, nullptr));
  pthread_attr_destroy(&attributes);
  EXPECT_GT(outcome.left, 0u);
  EXPECT_LT(outcome.left, kWanted);  // a sanitizer may give more than was asked
  EXPECT_TRUE(outcome.ran);
  EXPECT_EQ(1, outcome.touched);
}

TEST(OwnStack, AThreadOfItsOwnHasRoom) {
  int touched = 0;
  EXPECT_TRUE(run_on_own_thread(kStack, touch, &touched));
  EXPECT_EQ(1, touched);
}

TEST(OwnStack, WithoutMemoryThereIsNone) {
  int touched = 0;
  EXPECT_FALSE(run_on_own_stack(size_t{1} << 62, touch, &touched));
  EXPECT_EQ(0, touched);
}

}  // namespace
}  // namespace uiw::core::test
