// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/event_notifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>

#include "cm/lateness.h"
#include "core/chance.h"
#include "core/clock.h"

namespace uiw::cm {
namespace {

// A descriptor whose notify() is slow on demand.
class SlowSink final : public EventSink {
 public:
  void notify() override {
    ++notifications;
    if (slow) {
      inside.release();
      go_on.acquire();
    }
    readable = true;
  }
  bool clear() override {
    const bool was_readable = readable.exchange(false);
    if (!was_readable && ++refusals == 1) refused.release();
    return was_readable;
  }

  bool slow = false;
  std::atomic<bool> readable{false};
  std::atomic<int> notifications{0}, refusals{0};
  std::binary_semaphore inside{0}, go_on{0}, refused{0};
};

class EventNotifierTest : public testing::Test {
 protected:
  EventNotifierTest() : engine_(std::move(*engine::EngineRef::acquire())) {
    channel_.sink = &sink_;
  }
  ~EventNotifierTest() override { settle(); }

  void queue(QueuedEvent& event, engine::Engine* engine) {
    std::lock_guard hold(lock_);
    channel_.events.append(event);
    notifier_.queued(channel_, engine);
  }
  void take(QueuedEvent& event) {
    std::lock_guard hold(lock_);
    channel_.events.remove(event);
    notifier_.taken(channel_);
  }
  void on_engine(const std::function<void()>& call) {
    engine_->run_sync([&] { call(); });
  }
  void settle() {
    on_engine([] {});
  }

  engine::EngineRef engine_;
  SlowSink sink_;
  std::mutex lock_;
  EventNotifier notifier_{lock_};
  Channel channel_;
  QueuedEvent events_[3];
};

TEST_F(EventNotifierTest, OtherThreadsNotifyAtOnceOfEachEvent) {
  queue(events_[0], &*engine_);
  EXPECT_TRUE(sink_.readable);
  queue(events_[1], nullptr);
  EXPECT_EQ(sink_.notifications, 2);
  take(events_[0]);
  EXPECT_TRUE(sink_.readable);
  take(events_[1]);
  EXPECT_FALSE(sink_.readable);
  queue(events_[2], nullptr);
  EXPECT_EQ(sink_.notifications, 3);
}

// A program that waits for edges has taken the first one, and then one event only.
TEST_F(EventNotifierTest, TheEngineNotifiesAgainBehindWhatNobodyHasFetched) {
  on_engine([&] {
    queue(events_[0], &*engine_);
    queue(events_[1], &*engine_);
  });
  settle();
  EXPECT_EQ(sink_.notifications, 1);
  on_engine([&] { queue(events_[2], &*engine_); });
  settle();
  EXPECT_EQ(sink_.notifications, 2);
  for (QueuedEvent& event : events_) take(event);
  EXPECT_FALSE(sink_.readable);
}

TEST_F(EventNotifierTest, OtherThreadsDoNotWaitForTheEngine) {
  on_engine([&] {
    queue(events_[0], &*engine_);
    queue(events_[1], nullptr);
    EXPECT_TRUE(sink_.readable);
  });
  settle();
  EXPECT_EQ(sink_.notifications, 1);
}

TEST_F(EventNotifierTest, TheEngineNotifiesOnceAfterItsTurn) {
  on_engine([&] {
    for (QueuedEvent& event : events_) queue(event, &*engine_);
    EXPECT_EQ(sink_.notifications, 0);
  });
  settle();
  EXPECT_TRUE(sink_.readable);
  EXPECT_EQ(sink_.notifications, 1);
}

TEST_F(EventNotifierTest, FetchedMeanwhileIsNotNotified) {
  on_engine([&] {
    queue(events_[0], &*engine_);
    take(events_[0]);
  });
  settle();
  EXPECT_EQ(sink_.notifications, 0);
  on_engine([&] { queue(events_[1], &*engine_); });
  settle();
  EXPECT_EQ(sink_.notifications, 1);
}

// The last event is fetched while the engine notifies of it: nothing may be left in the descriptor.
TEST_F(EventNotifierTest, FetchingWaitsForNotify) {
  sink_.slow = true;
  std::thread engine([&] { on_engine([&] { queue(events_[0], &*engine_); }); });
  sink_.inside.acquire();
  std::thread taker([&] { take(events_[0]); });
  sink_.refused.acquire();
  EXPECT_FALSE(sink_.readable);
  sink_.go_on.release();
  taker.join();
  engine.join();
  EXPECT_FALSE(sink_.readable);
  EXPECT_EQ(sink_.notifications, 1);
}

// The same behind another event, which was shown already: that there was something to clear does
// not say that the engine's has come.
TEST_F(EventNotifierTest, FetchingWaitsForNotifyAlsoBehindOthers) {
  queue(events_[0], nullptr);
  sink_.slow = true;
  std::thread engine([&] { on_engine([&] { queue(events_[1], &*engine_); }); });
  sink_.inside.acquire();
  take(events_[0]);
  EXPECT_TRUE(sink_.readable);
  std::atomic<bool> taken = false;
  std::thread taker([&] {
    take(events_[1]);
    taken = true;
  });
  while (sink_.readable) sched_yield();
  for (int i = 0; i < 1000; ++i) sched_yield();
  EXPECT_FALSE(taken);
  sink_.go_on.release();
  taker.join();
  engine.join();
  EXPECT_FALSE(sink_.readable);
}

TEST_F(EventNotifierTest, LeavingWaitsForNotify) {
  sink_.slow = true;
  on_engine([&] { queue(events_[0], &*engine_); });
  sink_.inside.acquire();
  std::atomic<bool> left = false;
  std::thread leaver([&] {
    std::unique_lock hold(lock_);
    notifier_.leave(channel_, hold);
    left = sink_.readable.load();
  });
  for (int i = 0; i < 1000; ++i) sched_yield();
  sink_.go_on.release();
  leaver.join();
  EXPECT_TRUE(left);  // not before notify() ended
}

TEST_F(EventNotifierTest, AChannelThatLeftIsNotNotified) {
  on_engine([&] {
    queue(events_[0], &*engine_);
    std::unique_lock hold(lock_);
    notifier_.leave(channel_, hold);
  });
  settle();
  EXPECT_EQ(sink_.notifications, 0);
}

// As --shake has it.
TEST_F(EventNotifierTest, WhatIsLateIsHiddenUntilItIsDue) {
  on_engine([&] {
    channel_.due = engine_->now() + 20 * core::kMillisecond;
    queue(events_[0], &*engine_);
  });
  settle();
  {
    const std::lock_guard hold(lock_);
    EXPECT_TRUE(EventNotifier::is_late(channel_));
  }
  EXPECT_EQ(sink_.notifications, 0);
  const core::Nanoseconds end = core::now() + 60 * core::kSecond;
  while (!sink_.readable && core::now() < end) sched_yield();
  EXPECT_EQ(sink_.notifications, 1);
  const std::lock_guard hold(lock_);
  EXPECT_FALSE(EventNotifier::is_late(channel_));
}

TEST_F(EventNotifierTest, WhatIsShownIsNotHiddenByAnEventBehindIt) {
  on_engine([&] {
    queue(events_[0], nullptr);
    queue(events_[1], &*engine_);
  });
  settle();
  EXPECT_EQ(sink_.notifications, 2);
  EXPECT_EQ(channel_.notifications_drawn, 0U);
}

TEST_F(EventNotifierTest, WhatIsLateComesWithAnEventOfAnotherThread) {
  on_engine([&] {
    channel_.due = engine_->now() + 3600 * core::kSecond;
    queue(events_[0], &*engine_);
    queue(events_[1], nullptr);
    EXPECT_FALSE(EventNotifier::is_late(channel_));
  });
  settle();
  EXPECT_EQ(sink_.notifications, 1);
}

TEST_F(EventNotifierTest, TheEngineEndsWithoutWhatIsLateAndWasDiscarded) {
  on_engine([&] {
    channel_.due = engine_->now() + 3600 * core::kSecond;
    queue(events_[0], &*engine_);
  });
  settle();
  {
    std::unique_lock hold(lock_);
    notifier_.leave(channel_, hold);
  }
  on_engine([&] { notifier_.engine_goes(*engine_); });
  EXPECT_EQ(sink_.notifications, 0);
}

// Half of the draws, so that what is late is late beside something.
TEST(Lateness, IsBoundedAndOftenNone) {
  int prompt = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const core::Nanoseconds late = lateness_of(core::mixed(i));
    EXPECT_GE(late, 0);
    EXPECT_LT(late, core::tuning::kLongestLateness);
    prompt += late == 0;
  }
  EXPECT_NEAR(prompt, 500, 100);
}

// A descriptor that its program has emptied itself.
TEST_F(EventNotifierTest, FetchingDoesNotWaitWithoutNotify) {
  queue(events_[0], nullptr);
  sink_.readable = false;
  take(events_[0]);
  EXPECT_EQ(sink_.refusals, 1);
}

}  // namespace
}  // namespace uiw::cm
