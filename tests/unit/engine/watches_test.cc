// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A watch ends when nobody puts it off any more, and costs the engine nothing before.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "unit/engine/support.h"

namespace uiw::engine {
namespace {

using core::kMillisecond;

struct Counted final : Watch {
  void expire() override {
    expired_at = core::now();
    expired.fetch_add(1);
    if (again > 0) engine->watch(*this, again);
  }
  std::atomic<int> expired{0};
  std::atomic<core::Nanoseconds> expired_at{0};
  Engine* engine = nullptr;
  core::Nanoseconds again = 0;
};

struct Watching : testing::Test {
  void watch(Counted& watch, core::Nanoseconds from_now) {
    watch.engine = engine.get();
    engine->run_sync([&] { engine->watch(watch, from_now); });
  }
  void unwatch(Counted& watch) {
    engine->run_sync([&] {
      engine->unwatch(watch);
      EXPECT_FALSE(watch.watched());
    });
  }
  uint64_t wakes() { return engine->counters().wakes.load(); }

  std::unique_ptr<Engine> engine = test::start_engine();
  Counted one, other;
};

TEST_F(Watching, ExpiresOnce) {
  watch(one, kMillisecond);
  test::poll_until([&] { return one.expired > 0; });
  watch(other, kMillisecond);
  test::poll_until([&] { return other.expired > 0; });
  engine->run_sync([&] { EXPECT_FALSE(one.watched() || other.watched()); });
  EXPECT_EQ(one.expired, 1);
}

// A turn may be long: an engine that lost its processor in it would look again and again at once.
TEST_F(Watching, ExpiresNotBeforeItsTime) {
  core::Nanoseconds begun = 0;
  engine->run_sync([&] {
    engine->now();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    begun = core::now();
    one.engine = engine.get();
    engine->watch(one, kMillisecond);
  });
  test::poll_until([&] { return one.expired > 0; });
  EXPECT_GE(one.expired_at - begun, kMillisecond);
}

TEST_F(Watching, MayBeWatchedAgainWhenItExpires) {
  one.again = kMillisecond;
  watch(one, kMillisecond);
  test::poll_until([&] { return one.expired >= 5; });
  unwatch(one);
  const int expired = one.expired;
  watch(other, 5 * kMillisecond);  // later than the next one would have been
  test::poll_until([&] { return other.expired > 0; });
  EXPECT_EQ(one.expired, expired);
}

// The deadline is far beyond what the machine may hold this thread up for.
TEST_F(Watching, PutOffItNeitherExpiresNorWakesTheEngine) {
  watch(one, 500 * core::kSecond);
  // A task that is run before its poster looks whether the engine sleeps wakes it once more, so
  // watch() may do so in the first round. In a round without that nothing else wakes the engine.
  test::poll_until([&] {
    const uint64_t before = wakes();
    for (int i = 0; i < 100'000; ++i) engine->put_off(one, (500 + i) * core::kSecond);
    return wakes() == before;
  });
  EXPECT_EQ(one.expired, 0);
  // Put off to almost at once it is not for long.
  engine->put_off(one, 1);
  test::poll_until([&] { return one.expired > 0; });
}

// The engine sleeps until the earliest of them.
TEST_F(Watching, EachHasADeadlineOfItsOwn) {
  watch(one, 20 * kMillisecond);
  watch(other, 500 * core::kSecond);
  engine->put_off(one, 500 * core::kSecond);
  one.again = 500 * core::kSecond;
  engine->put_off(other, 21 * kMillisecond);
  test::poll_until([&] { return other.expired > 0; });
  EXPECT_EQ(one.expired, 0);
  unwatch(one);
}

TEST_F(Watching, OneOfSeveralIsBroughtForward) {
  watch(one, 500 * core::kSecond);
  watch(other, 400 * core::kSecond);
  engine->put_off(one, kMillisecond);
  test::poll_until([&] { return one.expired > 0; });
  EXPECT_EQ(other.expired, 0);
  unwatch(other);
}

TEST_F(Watching, ThreadsPutOffWhileTheEngineWatches) {
  one.again = other.again = kMillisecond;
  watch(one, kMillisecond);
  watch(other, kMillisecond);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Counted* watch : {&one, &other, &one})
    threads.emplace_back([&, watch] {
      while (!stop) engine->put_off(*watch, 1);
    });
  test::poll_until([&] { return one.expired > 0 && other.expired > 0; });
  stop = true;
  for (std::thread& thread : threads) thread.join();
  unwatch(one);
  unwatch(other);
}

// Whoever is watched when the engine stops hears nothing any more.
TEST_F(Watching, DoesNotKeepTheEngine) {
  watch(one, 500 * core::kSecond);
  unwatch(one);
  watch(other, kMillisecond);
  engine.reset();
  EXPECT_EQ(one.expired, 0);
}

}  // namespace
}  // namespace uiw::engine
