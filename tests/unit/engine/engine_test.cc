// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engine's thread: start and stop, work from other threads, timers.
#include "engine/engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <optional>
#include <semaphore>
#include <string_view>
#include <thread>
#include <vector>

#include "core/settings.h"
#include "engine/fixed_files.h"
#include "support/descriptor_limit.h"
#include "unit/engine/support.h"

namespace uiw::engine {
namespace {

using test::Watched;

struct Call final : Task {
  explicit Call(std::function<void()> its_body) : body(std::move(its_body)) {}
  void run() override { body(); }
  std::function<void()> body;
};

struct Alarm final : Timer {
  explicit Alarm(std::function<void()> its_body = {}) : body(std::move(its_body)) {}
  void expire() override { body(); }
  std::function<void()> body;
};

TEST(Engine, RunsTasksOnItsOwnThread) {
  auto engine = test::start_engine();
  ASSERT_TRUE(engine);
  const bool epoll = core::settings().engine == core::EngineKind::kEpoll;
  EXPECT_STREQ(engine->backend_name(), epoll ? "epoll" : "io_uring");
  EXPECT_FALSE(engine->on_engine_thread());
  Watched<bool> done(false);
  bool there = false;
  Call task([&] {
    there = engine->on_engine_thread();
    done.set(true);
  });
  engine->post(task);
  done.wait_for(true);
  EXPECT_TRUE(there);
}

TEST(Engine, ThreadIsNamedAndTakesNoSignals) {
  auto engine = test::start_engine();
  char name[16] = {};
  sigset_t blocked;
  engine->run_sync([&] {
    pthread_getname_np(pthread_self(), name, sizeof name);
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  });
  EXPECT_STREQ(name, "uiwarp");
  for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF}) {
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  }
  // And ours are as they were.
  sigset_t here;
  pthread_sigmask(SIG_SETMASK, nullptr, &here);
  EXPECT_EQ(sigismember(&here, SIGINT), 0);
}

TEST(Engine, RunSyncReturnsAfterTheCall) {
  auto engine = test::start_engine();
  int value = 0;
  engine->run_sync([&] {
    engine->run_sync([&] { ++value; });  // already there: directly
    EXPECT_EQ(value, 1);
  });
  for (int i = 0; i < 1000; ++i) engine->run_sync([&] { ++value; });
  EXPECT_EQ(value, 1001);
}

// What it works on lies on the caller's stack.
TEST(Engine, NobodyIsCancelledWhileTheEngineWorksForHim) {
  struct Caller {
    std::unique_ptr<Engine> engine = test::start_engine();
    std::binary_semaphore entered{0}, cancelled{0};
    bool returned = false;
    static void* run(void* arg) {
      auto& caller = *static_cast<Caller*>(arg);
      caller.engine->run_sync([&] {
        caller.entered.release();
        caller.cancelled.acquire();
      });
      caller.returned = true;
      pthread_testcancel();
      return nullptr;
    }
  } caller;
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, &Caller::run, &caller), 0);
  caller.entered.acquire();
  EXPECT_EQ(pthread_cancel(thread), 0);
  caller.cancelled.release();
  void* result = nullptr;
  EXPECT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(caller.returned);
}

TEST(Engine, ATaskMayPostItselfAndFreeItself) {
  auto engine = test::start_engine();
  Watched<int> runs(0);
  struct Again final : Task {
    Engine* engine;
    Watched<int>* runs;
    int left = 100;
    void run() override {
      Watched<int>* told = runs;
      if (--left > 0) {
        engine->post(*this);
      } else {
        delete this;
      }
      told->change([](int& n) { ++n; });
    }
  };
  auto* task = new Again;
  task->engine = engine.get();
  task->runs = &runs;
  engine->post(*task);
  runs.wait_for(100);
}

TEST(Engine, SeveralThreadsPostAndWaitAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 5000;
  auto engine = test::start_engine();
  struct Counting final : Task {
    int* last;
    int number;
    bool* in_order;
    void run() override {
      if (*last != number - 1) *in_order = false;
      *last = number;
    }
  };
  std::array<int, kThreads> last{};
  bool in_order = true;
  int calls = 0;
  std::vector<std::vector<Counting>> tasks(kThreads, std::vector<Counting>(kTasks));
  std::vector<std::thread> posters;
  for (int p = 0; p < kThreads; ++p) {
    posters.emplace_back([&, p] {
      for (int i = 0; i < kTasks; ++i) {
        tasks[p][i].last = &last[p];
        tasks[p][i].number = i + 1;
        tasks[p][i].in_order = &in_order;
        engine->post(tasks[p][i]);
        if (i % 50 == 0) engine->run_sync([&] { ++calls; });
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  engine->run_sync([] {});
  engine->run_sync([&] {
    EXPECT_TRUE(in_order);
    for (int number : last) EXPECT_EQ(number, kTasks);
    EXPECT_EQ(calls, kThreads * kTasks / 50);
  });
}

TEST(Engine, StoppingRunsWhatWasPostedBefore) {
  auto engine = test::start_engine();
  std::vector<std::unique_ptr<Call>> tasks;
  int runs = 0;
  for (int i = 0; i < 100; ++i) {
    tasks.push_back(std::make_unique<Call>([&] { ++runs; }));
    engine->post(*tasks.back());
  }
  engine.reset();
  EXPECT_EQ(runs, 100);
}

// The ring, or epoll and a timer; the eventfd, and the timer of the watches.
int descriptors_of(const Engine& engine) {
  return engine.backend_name() == std::string_view("epoll") ? 4 : 3;
}

TEST(Engine, StartingAndStoppingLeavesNothingBehind) {
  test::start_engine().reset();  // whatever the first one initialises for good
  const int descriptors = test::open_descriptors();
  const int threads = test::threads();
  for (int i = 0; i < 100; ++i) {
    auto engine = test::start_engine();
    ASSERT_TRUE(engine);
    EXPECT_EQ(test::open_descriptors(), descriptors + descriptors_of(*engine));
    EXPECT_GT(test::threads(), 1);
    engine->run_sync([] {});
  }
  EXPECT_EQ(test::open_descriptors(), descriptors);
  // A joined thread leaves /proc a moment later.
  test::poll_until([&] { return test::threads() <= threads; });
}

// Whichever of its descriptors it is that there is no room for.
TEST(Engine, WithoutDescriptorsItDoesNotStartAndLeavesNothingBehind) {
  const auto started = test::start_engine();
  const int needed = descriptors_of(*started);
  const int descriptors = test::open_descriptors();
  const int lowest = dup(STDIN_FILENO);
  ASSERT_GE(lowest, 0);
  close(lowest);
  for (int room = 0; room < needed; ++room) {
    std::optional<uiw::test::DescriptorLimit> few(static_cast<rlim_t>(lowest + room));
    const auto engine = Engine::start();
    few.reset();
    ASSERT_FALSE(engine) << room;
    EXPECT_EQ(engine.error(), EMFILE) << room;
    EXPECT_EQ(test::open_descriptors(), descriptors) << room;
  }
}

TEST(Engine, LeavesTheLimitOfDescriptorsAsItIs) {
  const uiw::test::DescriptorLimit few(FixedFiles::kCount - 1);
  auto engine = test::start_engine();
  ASSERT_TRUE(engine);
  EXPECT_EQ(uiw::test::DescriptorLimit::allowed(), FixedFiles::kCount - 1);
  int calls = 0;
  engine->run_sync([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Engine, DescriptorsAreNotInherited) {
  std::vector<bool> before;
  for (int fd = 0; fd < 256; ++fd) before.push_back(fcntl(fd, F_GETFD) >= 0);
  auto engine = test::start_engine();
  int ours = 0;
  for (int fd = 0; fd < 256; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || before[fd]) continue;
    ++ours;
    EXPECT_TRUE(flags & FD_CLOEXEC) << fd;
  }
  EXPECT_EQ(ours, descriptors_of(*engine));
}

TEST(Engine, StoppingWaitsForOrphansThatEnd) {
  auto engine = test::start_engine();
  struct Guest final : OrphanedSocket, Timer {
    Engine* engine;
    bool* left;
    void expire() override {
      engine->release(*this);
      *left = true;
    }
    void evict() override {
      engine->release(*this);
      ADD_FAILURE() << "evicted before its time";
    }
  };
  bool left[3] = {};
  Guest guests[3];
  engine->run_sync([&] {
    for (int i = 0; i < 3; ++i) {
      guests[i].engine = engine.get();
      guests[i].left = &left[i];
      engine->adopt(guests[i]);
    }
    engine->arm(guests[1], 0);
    engine->arm(guests[0], core::kMillisecond);
    engine->arm(guests[2], 2 * core::kMillisecond);
  });
  engine.reset();
  EXPECT_TRUE(left[0] && left[1] && left[2]);
}

TEST(Engine, StoppingEvictsOrphansThatStay) {
  auto engine = test::start_engine();
  struct Guest final : OrphanedSocket {
    Engine* engine;
    int evictions = 0;
    void evict() override {
      ++evictions;
      engine->release(*this);
    }
  } guest;
  guest.engine = engine.get();
  engine->run_sync([&] { engine->adopt(guest); });
  engine.reset();
  EXPECT_EQ(guest.evictions, 1);
}

TEST(Engine, TheOldestStrangerGoesWhenThereAreTooMany) {
  const uiw::test::DescriptorLimit few(16 * 20);
  auto engine = test::start_engine();
  struct Guest final : OrphanedSocket {
    Engine* engine = nullptr;
    int evictions = 0;
    void evict() override {
      ++evictions;
      engine->release(*this);
    }
  };
  Guest strangers[23], peers[23];
  engine->run_sync([&] {
    EXPECT_EQ(Engine::most_unauthenticated(), 20u);
    for (int i = 0; i < 23; ++i) {
      strangers[i].engine = peers[i].engine = engine.get();
      engine->adopt(peers[i]);
      engine->adopt(strangers[i], Standing::kUnauthenticated);
    }
    for (int i = 0; i < 23; ++i) {
      EXPECT_EQ(strangers[i].evictions, i < 3) << i;
      EXPECT_EQ(peers[i].evictions, 0) << i;
    }
  });
  engine.reset();
  for (int i = 0; i < 23; ++i) EXPECT_EQ(strangers[i].evictions + peers[i].evictions, 2) << i;
}

TEST(Engine, TimersExpireByDeadlineNotByOrderOfArming) {
  auto engine = test::start_engine();
  Watched<std::vector<int>> log;
  auto note = [&](int n) { log.change([n](auto& all) { all.push_back(n); }); };
  Alarm late([&] { note(3); }), early([&] { note(1); }), middle([&] { note(2); });
  Alarm never([&] { note(4); });
  engine->run_sync([&] {
    engine->arm(late, 12 * core::kMillisecond);
    engine->arm(never, 6 * core::kMillisecond);
    engine->arm(early, 4 * core::kMillisecond);
    engine->arm(middle, 8 * core::kMillisecond);
    engine->disarm(never);
    EXPECT_FALSE(never.armed());
  });
  EXPECT_EQ(log.wait([](auto& all) { return all.size() == 3; }), (std::vector{1, 2, 3}));
}

// The kernel's timer is set for the later one when the earlier one is armed, and still set for that
// when it is gone.
TEST(Engine, ATimerIsInTimeWhateverWasArmedBefore) {
  auto engine = test::start_engine();
  Watched<int> expired(0);
  Alarm late, early([&] { expired.set(1); }), middle([&] { expired.set(2); });
  engine->run_sync([&] { engine->arm(late, 3600 * core::kSecond); });
  engine->run_sync([&] { engine->arm(early, 2 * core::kMillisecond); });
  expired.wait([](int n) { return n == 1; });
  engine->run_sync([&] { engine->arm(early, 2 * core::kMillisecond); });
  engine->run_sync([&] {
    engine->disarm(early);
    engine->arm(middle, 4 * core::kMillisecond);
  });
  expired.wait([](int n) { return n == 2; });
  engine->run_sync([&] { engine->disarm(late); });
}

TEST(Engine, TimerDoesNotExpireEarly) {
  auto engine = test::start_engine();
  Watched<core::Nanoseconds> expired(0);
  core::Nanoseconds armed = 0;
  Alarm alarm([&] { expired.set(core::now()); });
  engine->run_sync([&] {
    armed = engine->now();
    engine->arm(alarm, 5 * core::kMillisecond);
  });
  const auto when = expired.wait([](auto t) { return t != 0; });
  EXPECT_GE(when - armed, 5 * core::kMillisecond);
}

TEST(Engine, TimerMayRearmItselfAndBeDestroyedArmed) {
  auto engine = test::start_engine();
  Watched<int> runs(0);
  {
    Alarm alarm;
    alarm.body = [&] {
      runs.change([](int& n) { ++n; });
      engine->arm(alarm, 0);
    };
    engine->run_sync([&] { engine->arm(alarm, 0); });
    runs.wait([](int n) { return n >= 20; });
    engine->run_sync([&] { engine->disarm(alarm); });
  }
  engine->run_sync([&] {
    Alarm gone([] { ADD_FAILURE() << "expired after it was destroyed"; });
    engine->arm(gone, 0);
  });
  engine->run_sync([] {});
}

TEST(Engine, ATimerOfZeroLengthDoesNotShutOutTasks) {
  auto engine = test::start_engine();
  Alarm busy;
  busy.body = [&] { engine->arm(busy, 0); };
  engine->run_sync([&] { engine->arm(busy, 0); });
  int calls = 0;
  for (int i = 0; i < 100; ++i) engine->run_sync([&] { ++calls; });
  EXPECT_EQ(calls, 100);
  engine->run_sync([&] { engine->disarm(busy); });
}

}  // namespace
}  // namespace uiw::engine
