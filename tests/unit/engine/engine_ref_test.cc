// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The shared engine of the process, and what forking does to it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <thread>
#include <vector>

#include "core/settings.h"
#include "engine/engine.h"
#include "unit/engine/support.h"

namespace uiw::engine {
namespace {

// ThreadSanitizer does not know threads that are started after a fork of several.
#ifdef __SANITIZE_THREAD__
constexpr bool kThreadsAfterFork = false;
#else
constexpr bool kThreadsAfterFork = true;
#endif

// Runs `body` in a child process; the exit status it ended with.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(EngineRef, AllReferencesShareOneEngine) {
  auto a = EngineRef::acquire();
  auto b = EngineRef::acquire();
  ASSERT_TRUE(a && b);
  EXPECT_EQ(&**a, &**b);
}

TEST(EngineRef, TheLastReferenceStopsIt) {
  const int descriptors = test::open_descriptors();
  {
    auto a = EngineRef::acquire();
    ASSERT_TRUE(a);
    EngineRef moved = std::move(*a);
    EXPECT_FALSE(*a);
    EngineRef other;
    EXPECT_FALSE(other);
    other = std::move(moved);
    EXPECT_TRUE(other);
    EXPECT_FALSE(moved);
    EXPECT_GT(test::open_descriptors(), descriptors);
    int calls = 0;
    other->run_sync([&] { ++calls; });
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

TEST(EngineRef, ManyThreadsAcquireAndReleaseAtOnce) {
  const int descriptors = test::open_descriptors();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 25; ++n) {
        auto engine = EngineRef::acquire();
        ASSERT_TRUE(engine);
        int calls = 0;
        (*engine)->run_sync([&] { ++calls; });
        EXPECT_EQ(calls, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

TEST(EngineRef, SeveralEnginesEndWithTheLastReference) {
  const int descriptors = test::open_descriptors();
  {
    auto a = EngineRef::acquire();
    ASSERT_TRUE(a);
    EXPECT_EQ(*a->at(0), &**a);
    auto far = a->at(core::Settings::kMostEngines - 1);
    ASSERT_TRUE(far);
    EXPECT_NE(*far, *a->at(0));
    auto b = EngineRef::acquire();
    ASSERT_TRUE(b);
    EXPECT_EQ(*b->at(core::Settings::kMostEngines - 1), *far);
    { EngineRef released = std::move(*a); }
    int calls = 0;
    (*far)->run_sync([&] { calls += (*far)->on_engine_thread() && !(*b)->on_engine_thread(); });
    EXPECT_EQ(calls, 1);
  }
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

TEST(EngineRef, ManyThreadsAskForTheSameEngine) {
  auto reference = EngineRef::acquire();
  ASSERT_TRUE(reference);
  std::array<Engine*, 4> got{};
  std::vector<std::thread> threads;
  for (Engine*& engine : got) threads.emplace_back([&] { engine = *reference->at(1); });
  for (std::thread& thread : threads) thread.join();
  for (Engine* engine : got) EXPECT_EQ(engine, got[0]);
}

TEST(EngineRef, AChildGetsNoOtherEngineOfItsParent) {
  auto reference = EngineRef::acquire();
  ASSERT_TRUE(reference && reference->at(1));
  EXPECT_EQ(in_child([&] {
              for (unsigned i : {1u, 2u}) {
                auto engine = reference->at(i);
                if (engine || engine.error() != ENODEV) return 1;
              }
              return 0;
            }),
            0);
}

TEST(EngineRef, AChildHangsOnNothingAndMayHaveItsOwn) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "not under ThreadSanitizer";
  auto engine = EngineRef::acquire();
  ASSERT_TRUE(engine);
  const int failed_step = in_child([&] {
    struct Never final : Task {
      void run() override { _exit(2); }
    } never;
    for (bool with_own : {false, true}) {
      core::Result<EngineRef> own = core::Errno{ENODEV};
      if (with_own) own = EngineRef::acquire();
      if (with_own && (!own || &**own == &**engine)) return 1;
      if (!(*engine)->in_child()) return 3;
      (*engine)->post(never);
      (*engine)->run_sync([] { _exit(4); });
      if (!with_own) continue;
      if ((*own)->in_child()) return 5;
      int calls = 0;
      (*own)->run_sync([&] { ++calls; });
      if (calls != 1) return 6;
      { EngineRef released = std::move(*engine); }  // does not count for the child's
      (*own)->run_sync([&] { ++calls; });
      if (calls != 2) return 7;
      // And so on.
      return in_child([&] {
        auto third = EngineRef::acquire();
        return third && (*own)->in_child() && !(*third)->in_child() ? 0 : 8;
      });
    }
    return 9;
  });
  EXPECT_EQ(failed_step, 0);
  // The parent's is as it was.
  int calls = 0;
  (*engine)->run_sync([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(EngineRef, AChildOfAProcessWhoseEngineEndedHasItsOwn) {
  { auto ended = EngineRef::acquire(); }
  test::poll_until([] { return test::threads() <= 2; });  // a sanitizer may have one
  const int failed_step = in_child([&] {
    auto own = EngineRef::acquire();
    if (!own) return 1;
    int calls = 0;
    (*own)->run_sync([&] { ++calls; });
    return calls == 1 ? 0 : 2;
  });
  EXPECT_EQ(failed_step, 0);
}

// Neither the ring, which liburing opens, nor anything else of it.
TEST(EngineRef, TakesNoStandardDescriptor) {
  if (!kThreadsAfterFork) GTEST_SKIP() << "not under ThreadSanitizer";
  test::poll_until([] { return test::threads() <= 2; });  // as above
  const int failed_step = in_child([&] {
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
    auto own = EngineRef::acquire();
    if (!own) return 1;
    int calls = 0;
    (*own)->run_sync([&] { ++calls; });
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      if (fcntl(fd, F_GETFD) != -1) return 2;
    return calls == 1 ? 0 : 3;
  });
  EXPECT_EQ(failed_step, 0);
}

}  // namespace
}  // namespace uiw::engine
