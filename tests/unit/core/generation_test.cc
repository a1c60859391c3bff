// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/generation.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "core/per_process.h"

namespace uiw::core {
namespace {

// What `body` returns in a child that `make` makes; it must be below 128.
template <class Make, class Body>
int in_child(Make&& make, Body&& body) {
  const pid_t child = static_cast<pid_t>(make());
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

// As a program that makes children without the C library, so that no fork handler runs.
long bare_clone() {
  return syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
}

TEST(Generation, StaysTheSameForAllThreadsOfAProcess) {
  const unsigned mine = generation();
  EXPECT_NE(mine, 0u);
  EXPECT_EQ(generation(), mine);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([mine] { EXPECT_EQ(generation(), mine); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Generation, ChildrenAndGrandchildrenHaveTheirOwn) {
  const unsigned mine = generation();
  const auto check = [mine] {
    const unsigned childs = generation();
    if (childs == 0 || childs == mine || generation() != childs) return 1;
    return in_child(fork, [mine, childs] {
      const unsigned grandchilds = generation();
      return grandchilds != 0 && grandchilds != mine && grandchilds != childs ? 0 : 2;
    });
  };
  EXPECT_EQ(in_child(fork, check), 0);
  EXPECT_EQ(in_child(bare_clone, check), 0);
  EXPECT_EQ(generation(), mine);
}

TEST(Generation, AChildThatSharesTheMemoryHasItsParents) {
  const unsigned mine = generation();
  volatile bool shared = false;
  const pid_t child = vfork();
  if (child == 0) {
    shared = true;
    _exit(generation() == mine ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (!shared) GTEST_SKIP() << "vfork() is fork() here, as under ThreadSanitizer";
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(PerProcess, AChildGetsAnotherOne) {
  struct Counter {
    int count = 0;
  };
  static constinit PerProcess<Counter> counters;
  Counter* const mine = counters.get();
  mine->count = 5;
  EXPECT_EQ(counters.get(), mine);
  EXPECT_EQ(in_child(fork,
                     [mine] {
                       Counter* const own = counters.get();
                       return own != mine && own->count == 0 && counters.get() == own ? 0 : 1;
                     }),
            0);
  EXPECT_EQ(counters.get(), mine);
  EXPECT_EQ(mine->count, 5);
}

}  // namespace
}  // namespace uiw::core
