// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Timers of a process whose CLOCK_MONOTONIC is not its host's: time_namespaces(7), which containers
// that were moved between hosts have.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "core/clock.h"
#include "unit/engine/support.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace uiw::engine {
namespace {

using core::kMillisecond;
using core::kSecond;

// ThreadSanitizer does not know threads that are started after a fork of several.
#ifdef __SANITIZE_THREAD__
constexpr bool kThreadsAfterFork = false;
#else
constexpr bool kThreadsAfterFork = true;
#endif

constexpr int kRefused = 77;

// The children that this process makes from now on are in a namespace whose clock differs by so
// many seconds. False: not here.
bool make_namespace(long offset) {
  if (unshare(CLONE_NEWTIME) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) return false;
  char text[64];
  const int size = snprintf(text, sizeof text, "monotonic %ld 0\n", offset);
  const int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  const bool set = fd >= 0 && write(fd, text, static_cast<size_t>(size)) == size;
  close(fd);
  return set;
}

template <class Check>
int in_fork(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 99;
  return WEXITSTATUS(status);
}

struct Alarm final : Timer {
  void expire() override { expired_at.set(core::now()); }
  test::Watched<core::Nanoseconds> expired_at{0};
};

// 0, or which check failed. Whoever waits for a timer that does not come waits for SIGALRM.
int check_timers() {
  alarm(20);
  auto engine = test::start_engine();
  if (!engine) return 1;
  Alarm early, late;
  const core::Nanoseconds begun = core::now();
  engine->run_sync([&] { engine->arm(late, 10 * kSecond); });
  engine->run_sync([] {});  // it sleeps for that one, and then for an earlier one
  engine->run_sync([&] { engine->arm(early, 200 * kMillisecond); });
  const core::Nanoseconds took =
      early.expired_at.wait([](core::Nanoseconds at) { return at != 0; }) - begun;
  const uint64_t wakes = engine->counters().wakes.load();
  engine->run_sync([&] { engine->disarm(late); });
  if (took < 200 * kMillisecond) return 2;
  if (took > 5 * kSecond) return 3;
  return wakes > 50 ? 4 : 0;
}

// Of a clock that is ahead timers would never come, of one behind they would all be due at once.
TEST(TimeNamespace, TimersComeWhenTheyAreDue) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "not under ThreadSanitizer";
  for (long offset : {100'000L, -static_cast<long>(core::now() / 2 / kSecond)}) {
    const int result =
        in_fork([&] { return make_namespace(offset) ? in_fork(check_timers) : kRefused; });
    if (result == kRefused) GTEST_SKIP() << "may make no time namespace";
    EXPECT_EQ(result, 0) << "the check that failed, " << offset << " s off";
  }
}

}  // namespace
}  // namespace uiw::engine
