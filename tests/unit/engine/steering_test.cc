// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engine's thread really moves to where its packets arrive, and away from there.
#include "engine/steering.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "unit/engine/support.h"

namespace uiw::engine {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void restrict_to(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

// Answers every octet with one, so that the sender can make a ping-pong of it.
struct Answering final : Op {
  void complete(int result, core::Bytes) override {
    if (result <= 0) {
      ended.set(true);
      return;
    }
    if (answer) {
      EXPECT_EQ(send(fd, "a", 1, MSG_NOSIGNAL), 1);
    }
    engine->receive(*this, fd);
  }
  Engine* engine = nullptr;
  int fd = -1;
  std::atomic<bool> answer{true};
  test::Watched<bool> ended{false};
};

// Everything in threads of its own, because it changes their CPUs.
template <class Body>
void apart(Body&& body) {
  std::thread thread(body);
  thread.join();
}

TEST(Steering, FollowsAPingPongAndKeepsAwayFromAStream) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  apart([&] {
    auto engine = test::start_engine();
    const test::SocketPair pair = test::connected_pair();
    const int ours = pair.ours, theirs = pair.theirs;
    Answering op;
    op.engine = engine.get();
    op.fd = ours;
    engine->run_sync([&] { engine->receive(op, op.fd); });

    // On loopback packets are processed on their sender's CPU. Whichever the engine was on, one
    // of the two is another.
    for (int cpu : {cpus[0], cpus[1]}) {
      restrict_to({cpu});
      std::vector<int> where;
      char answer;
      do {
        for (int i = 0; i < 64; ++i) {
          ASSERT_EQ(write(theirs, "q", 1), 1);
          ASSERT_EQ(read(theirs, &answer, 1), 1);
          // Where both share a CPU, the engine has answered but not gone to sleep yet: let it.
          sched_yield();
        }
        engine->run_sync([&] { where = allowed_cpus(); });
      } while (where != std::vector{cpu});
    }
    EXPECT_GE(engine->counters().moves, 2u);
    EXPECT_EQ(engine->counters().departures, 0u);

    op.answer = false;
    std::vector<char> block(1 << 20);
    while (engine->counters().departures == 0) {
      ASSERT_GT(write(theirs, block.data(), block.size()), 0);
    }
    std::vector<int> where;
    engine->run_sync([&] { where = allowed_cpus(); });
    std::vector<int> others = cpus;
    std::erase(others, cpus[1]);  // the sender's
    EXPECT_EQ(where, others);

    close(theirs);
    op.ended.wait_for(true);
    close(ours);
  });
}

// 64 KiB at a time, each of them waited for.
TEST(Steering, FollowsLargeMessagesThatAreAnswered) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "needs two CPUs";
  constexpr size_t kMessage = 64 << 10;
  std::vector<char> message(kMessage);
  const auto carry = [&](int from, int to) {
    ASSERT_EQ(write(from, message.data(), kMessage), static_cast<ssize_t>(kMessage));
    ASSERT_EQ(recv(to, message.data(), kMessage, MSG_WAITALL), static_cast<ssize_t>(kMessage));
  };
  const auto several_windows = [&](int ours, int theirs, bool answer) {
    Steering steering(true);
    auto done = Placement::Action::kStay;
    for (uint32_t i = 0; i < 4 * core::tuning::kPlacementWindow; ++i) {
      carry(theirs, ours);
      if (answer) carry(ours, theirs);
      std::this_thread::sleep_for(std::chrono::microseconds(1));  // counts as a sleep
      const auto action = steering.turn(kMessage, 0, ours);
      if (action != Placement::Action::kStay) done = action;
    }
    return done;
  };
  apart([&] {
    const test::SocketPair pair = test::connected_pair();
    const std::vector<int> before = allowed_cpus();
    EXPECT_EQ(several_windows(pair.ours, pair.theirs, false), Placement::Action::kStay);
    EXPECT_EQ(allowed_cpus(), before);
    EXPECT_EQ(several_windows(pair.ours, pair.theirs, true), Placement::Action::kFollow);
    EXPECT_EQ(allowed_cpus().size(), 1u);
    close(pair.ours);
    close(pair.theirs);
  });
}

TEST(Steering, NeverLeavesTheCpusTheProcessMayUse) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  std::unique_ptr<Engine> engine;
  apart([&] {
    restrict_to({cpus[0]});
    engine = test::start_engine();
  });
  const test::SocketPair pair = test::connected_pair();
  const int ours = pair.ours, theirs = pair.theirs;
  Answering op;
  op.engine = engine.get();
  op.fd = ours;
  engine->run_sync([&] { engine->receive(op, op.fd); });
  apart([&, fd = theirs] {
    restrict_to({cpus[1]});
    char answer;
    for (int i = 0; i < 2000; ++i) {
      ASSERT_EQ(write(fd, "q", 1), 1);
      ASSERT_EQ(read(fd, &answer, 1), 1);
    }
  });
  std::vector<int> where;
  engine->run_sync([&] { where = allowed_cpus(); });
  EXPECT_EQ(where, std::vector{cpus[0]});
  EXPECT_EQ(engine->counters().moves, 0u);
  close(theirs);
  op.ended.wait_for(true);
  close(ours);
}

TEST(Steering, TurnedOffItTouchesNothing) {
  apart([] {
    const std::vector<int> before = allowed_cpus();
    const test::SocketPair pair = test::connected_pair();
    const int ours = pair.ours, theirs = pair.theirs;
    Steering steering(false);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(steering.turn(1, 0, ours), Placement::Action::kStay);
    EXPECT_EQ(allowed_cpus(), before);
    close(ours);
    close(theirs);
  });
}

TEST(Steering, ShorterSliceKeepsThePolicy) {
  apart([] {
    const int policy = sched_getscheduler(0);
    Steering::shorten_slice();
    EXPECT_EQ(sched_getscheduler(0), policy);
  });
}

}  // namespace
}  // namespace uiw::engine
