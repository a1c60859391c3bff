// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/fork_gate.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "check/forks.h"
#include "check/report.h"
#include "check/stack.h"
#include "support/forking_handler.h"

namespace uiw::check {
namespace {

constexpr useconds_t kAWhile = 20'000;  // far more than a thread takes that waits for nobody

void watch_forks_once() {
  static const bool is_watched = (watch_forks(), true);
  ASSERT_TRUE(is_watched);
}

TEST(ForkGateTest, WhoClosesItWaitsForWhoIsWithin) {
  ForkGate gate;
  gate.enter();
  std::atomic<bool> is_closed{false};
  std::thread closes([&] {
    gate.close();
    is_closed = true;
    gate.open();
  });
  usleep(kAWhile);
  EXPECT_FALSE(is_closed);
  gate.leave();
  closes.join();
  EXPECT_TRUE(is_closed);
  gate.enter();
  gate.leave();
}

TEST(ForkGateTest, WhoTakesAStackWaitsWhileItIsClosed) {
  std::atomic<bool> is_taken{false};
  fork_gate.close();
  std::thread takes([&] {
    Stack stack;
    capture(stack);
    is_taken = true;
  });
  usleep(kAWhile);
  EXPECT_FALSE(is_taken);
  fork_gate.open();
  takes.join();
  EXPECT_TRUE(is_taken);
}

TEST(ForkGateTest, AForkWaitsForWhoIsWithinAndItsChildFindsNobodyThere) {
  watch_forks_once();
  std::atomic<bool> is_within{false}, has_left{false};
  std::thread enters([&] {
    fork_gate.enter();
    is_within = true;
    usleep(kAWhile);
    has_left = true;
    fork_gate.leave();
  });
  while (!is_within) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    fork_gate.close();
    syscall(SYS_exit_group, 0);  // unlike _exit() no place where TSan looks for unjoined threads
  }
  EXPECT_TRUE(has_left);
  enters.join();
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

#ifndef __SANITIZE_THREAD__  // which minds that a child's list of objects is made in the handler
TEST(ForkGateTest, ASignalHandlerMayForkThatInterruptsWhoIsWithin) {
  watch_forks_once();
  const Context context{std::make_shared<CommandSpace>()};
  test::interrupted_by_forks(
      [&] {
        Stack stack;
        capture(stack);
        fork_gate.enter();
        fork_gate.leave();
        Objects::instance().add(context, &context, "context");
        Objects::instance().remove(&context);
        Report::instance().add({Kind::kInherited, "said once", {}, {}, {}, false});
      },
      [] { return 0; });
}
#endif

}  // namespace
}  // namespace uiw::check
