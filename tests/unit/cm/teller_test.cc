// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/teller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>

namespace uiw::cm {
namespace {

// A descriptor that is slow to be told, if wanted.
class SlowSink final : public EventSink {
 public:
  void tell() override {
    ++tells;
    if (slow) {
      inside.release();
      go_on.acquire();
    }
    told = true;
  }
  bool take_back() override {
    const bool was_told = told.exchange(false);
    if (!was_told && ++refusals == 1) refused.release();
    return was_told;
  }

  bool slow = false;
  std::atomic<bool> told{false};
  std::atomic<int> tells{0}, refusals{0};
  std::binary_semaphore inside{0}, go_on{0}, refused{0};
};

class TellerTest : public testing::Test {
 protected:
  TellerTest() : engine_(std::move(*engine::EngineRef::acquire())) { channel_.sink = &sink_; }
  ~TellerTest() override { settle(); }

  void queue(QueuedEvent& event, engine::Engine* engine) {
    std::lock_guard hold(lock_);
    channel_.events.append(event);
    teller_.queued(channel_, engine);
  }
  void take(QueuedEvent& event) {
    std::lock_guard hold(lock_);
    channel_.events.remove(event);
    teller_.taken(channel_);
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
  Teller teller_{lock_};
  Channel channel_;
  QueuedEvent events_[3];
};

TEST_F(TellerTest, OtherThreadsTellAtOnceAndOnce) {
  queue(events_[0], &*engine_);
  EXPECT_TRUE(sink_.told);
  queue(events_[1], nullptr);
  EXPECT_EQ(sink_.tells, 1);
  take(events_[0]);
  EXPECT_TRUE(sink_.told);
  take(events_[1]);
  EXPECT_FALSE(sink_.told);
  queue(events_[2], nullptr);
  EXPECT_EQ(sink_.tells, 2);
}

TEST_F(TellerTest, OtherThreadsDoNotWaitForTheEngine) {
  on_engine([&] {
    queue(events_[0], &*engine_);
    queue(events_[1], nullptr);
    EXPECT_TRUE(sink_.told);
  });
  settle();
  EXPECT_EQ(sink_.tells, 1);
}

TEST_F(TellerTest, TheEngineTellsOnceBehindItsTurn) {
  on_engine([&] {
    for (QueuedEvent& event : events_) queue(event, &*engine_);
    EXPECT_EQ(sink_.tells, 0);
  });
  settle();
  EXPECT_TRUE(sink_.told);
  EXPECT_EQ(sink_.tells, 1);
}

TEST_F(TellerTest, WhatIsTakenMeanwhileIsNotTold) {
  on_engine([&] {
    queue(events_[0], &*engine_);
    take(events_[0]);
  });
  settle();
  EXPECT_EQ(sink_.tells, 0);
  on_engine([&] { queue(events_[1], &*engine_); });
  settle();
  EXPECT_EQ(sink_.tells, 1);
}

// The last event is taken while the engine tells of it: nothing may be left in the descriptor.
TEST_F(TellerTest, TakingWaitsForWhoIsTelling) {
  sink_.slow = true;
  std::thread engine([&] { on_engine([&] { queue(events_[0], &*engine_); }); });
  sink_.inside.acquire();
  std::thread taker([&] { take(events_[0]); });
  sink_.refused.acquire();
  EXPECT_FALSE(sink_.told);
  sink_.go_on.release();
  taker.join();
  engine.join();
  EXPECT_FALSE(sink_.told);
  EXPECT_EQ(sink_.tells, 1);
}

TEST_F(TellerTest, LeavingWaitsForWhoIsTelling) {
  sink_.slow = true;
  on_engine([&] { queue(events_[0], &*engine_); });
  sink_.inside.acquire();
  std::atomic<bool> left = false;
  std::thread leaver([&] {
    std::unique_lock hold(lock_);
    teller_.leave(channel_, hold);
    left = sink_.told.load();
  });
  for (int i = 0; i < 1000; ++i) sched_yield();
  sink_.go_on.release();
  leaver.join();
  EXPECT_TRUE(left);  // not before it was told
}

TEST_F(TellerTest, WhoHasLeftIsNotTold) {
  on_engine([&] {
    queue(events_[0], &*engine_);
    std::unique_lock hold(lock_);
    teller_.leave(channel_, hold);
  });
  settle();
  EXPECT_EQ(sink_.tells, 0);
}

// A descriptor that its program has emptied by itself.
TEST_F(TellerTest, TakingDoesNotWaitForNobody) {
  queue(events_[0], nullptr);
  sink_.told = false;
  take(events_[0]);
  EXPECT_EQ(sink_.refusals, 1);
}

}  // namespace
}  // namespace uiw::cm
