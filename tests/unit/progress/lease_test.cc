// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A lease over members that only count what they are asked for.
#include "progress/lease.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "unit/engine/support.h"

namespace uiw::progress {
namespace {

struct Untold final : queue::CompletionEvents {
  void on_completion_event() override {}
  void on_overflow() override {}
};

class Counting final : public Member {
 public:
  bool send_deferred() override { return deferred.exchange(false) && ++sent_by_poll > 0; }
  bool send_coalesced() override { return coalesced.exchange(false) && ++coalesced_by_poll > 0; }
  void send_overdue(uint64_t now, uint64_t ticks, bool) override {
    if (now < since || now - since < ticks) return;
    if (deferred.exchange(false) || coalesced.exchange(false)) ++sent_as_old;
  }
  uint64_t waits_since() const override {
    return deferred || coalesced ? since.load() : UINT64_MAX;
  }
  bool has_unsent() const override { return unsent; }
  bool send_on() override { return unsent.exchange(false); }
  bool is_sending() const override { return false; }
  bool receive(std::span<uint8_t> buffer) override {
    EXPECT_FALSE(buffer.empty());
    ++receives;
    if (while_received) while_received();
    return arrived.exchange(false);
  }
  void pause_receiving() override { ++paused; }
  void return_wanted() override { ++returns; }
  void post_to_engine() override { ++posted; }
  void on_revoked(bool was_received) override {
    ++revoked;
    revoked_while_received = was_received;
  }

  std::function<void()> while_received;  // set while nobody polls
  std::atomic<uint64_t> since{0};
  std::atomic<bool> deferred{false}, coalesced{false}, unsent{false}, arrived{false};
  std::atomic<int> sent_by_poll{0}, coalesced_by_poll{0}, sent_as_old{0}, receives{0}, paused{0},
      returns{0}, posted{0}, revoked{0};
  std::atomic<bool> revoked_while_received{false};
};

class Leases : public testing::Test {
 protected:
  void grant(Counting& member, bool receiving) {
    engine->run_sync([&] {
      lease = Lease::of(*engine, *cq);
      ASSERT_NE(lease, nullptr);
      EXPECT_TRUE(lease->grant(member, receiving));
    });
  }
  // The engine takes back what a slow test has not used for a millisecond, and grants nothing while
  // a poller is inside.
  void grant_again(Counting& member, bool receiving) {
    for (bool is_one = false; !is_one;) {
      engine->run_sync([&] {
        lease = Lease::of(*engine, *cq);
        is_one = member.lease() || lease->grant(member, receiving);
      });
    }
  }
  void poll() {
    ibv_wc wc;
    EXPECT_EQ(cq->poll(1, &wc), 0);
  }
  void defer(Counting& member) {
    const uint64_t now = core::ticks();
    lease->posted(now);
    member.since = now;
    member.deferred = true;
    lease->deferred(now);
  }
  void TearDown() override {
    // Members go before the queue: nobody may look at them then.
    engine->run_sync([&] {
      for (Counting* member : {&one, &other})
        if (member->lease()) member->lease()->revoke(*member);
    });
  }

  Untold events;
  std::unique_ptr<engine::Engine> engine = test::start_engine();
  std::unique_ptr<queue::CompletionQueue> cq = queue::CompletionQueue::create(4, &events);
  Lease* lease = nullptr;
  Counting one, other;
};

TEST_F(Leases, PollersReceiveForThoseWhoAreToBeReceived) {
  engine->run_sync([&] {
    lease = Lease::of(*engine, *cq);
    EXPECT_TRUE(lease->grant(one, true));
    EXPECT_TRUE(lease->grant(other, false));
    EXPECT_EQ(one.paused, 1);
    poll();  // nothing ends meanwhile
    EXPECT_EQ(one.receives, 1);
    EXPECT_EQ(other.receives, 0);
  });
}

TEST_F(Leases, PollersSendWhatWasDeferredAndWhatAFullSocketLeft) {
  engine->run_sync([&] {
    lease = Lease::of(*engine, *cq);
    lease->grant(one, false);
    one.deferred = one.unsent = true;
    poll();
    EXPECT_EQ(one.sent_by_poll, 1);
    EXPECT_FALSE(one.unsent);
  });
}

TEST_F(Leases, CoalescedReadsGoWhenNothingElseHappens) {
  engine->run_sync([&] {
    lease = Lease::of(*engine, *cq);
    lease->grant(one, true);
    one.coalesced = true;
    for (int i = 0; i < 5; ++i) {
      one.arrived = true;
      poll();
      EXPECT_EQ(one.coalesced_by_poll, 0);
    }
    poll();
    EXPECT_EQ(one.coalesced_by_poll, 1);
  });
}

TEST_F(Leases, TheEngineSendsWhatIsDeferredThoughNobodyComes) {
  for (int round = 0; round < 100; ++round) {
    grant_again(one, false);
    defer(one);
    test::poll_until([&] { return !one.deferred || one.revoked > 0; });
    one.deferred = false;
    one.revoked = 0;
  }
  EXPECT_EQ(one.sent_by_poll, 0);
  EXPECT_GT(one.sent_as_old, 0);
}

// The engine comes while a poller is inside, which then sends before it leaves what another thread
// has deferred meanwhile.
TEST_F(Leases, APollerThatIsInsideForLongSendsWhatWasDeferredMeanwhile) {
  one.while_received = [&] {
    const uint64_t wakes = engine->counters().wakes;
    const core::Nanoseconds until = core::now() + core::tuning::kMostDeferred;
    defer(one);
    test::poll_until([&] { return engine->counters().wakes > wakes && core::now() > until; });
    // It counts the wake before it looks. The second call ends behind that.
    for (int i = 0; i < 2; ++i) engine->run_sync([] {});
  };
  while (one.receives == 0) {
    grant_again(one, true);
    poll();
  }
  one.while_received = nullptr;
  EXPECT_FALSE(one.deferred);
  EXPECT_EQ(one.sent_as_old, 1);
}

TEST_F(Leases, TheEngineTakesBackWhatNobodyUses) {
  grant(one, true);
  grant(other, false);
  test::poll_until([&] { return one.revoked > 0 && other.revoked > 0; });
  EXPECT_TRUE(one.revoked_while_received);
  EXPECT_FALSE(other.revoked_while_received);
  engine->run_sync([&] { EXPECT_EQ(one.lease(), nullptr); });
  const int receives = one.receives;
  poll();
  EXPECT_EQ(one.receives, receives);
}

// Polls that find completions, or posts, do nothing for who receives.
TEST_F(Leases, PostsKeepOnlyThoseWhoNeedNoPolls) {
  grant(one, true);
  grant(other, false);
  test::poll_until([&] {
    lease->posted(core::ticks());
    return one.revoked > 0 || other.revoked > 0;
  });
  EXPECT_EQ(one.revoked, 1);
  // This thread may have been kept from posting.
  if (other.revoked == 0) engine->run_sync([&] { EXPECT_NE(other.lease(), nullptr); });
}

TEST_F(Leases, ArmingSendsAndGivesBack) {
  engine->run_sync([&] {
    lease = Lease::of(*engine, *cq);
    lease->grant(one, true);
    one.deferred = one.coalesced = true;
    cq->arm(false);
    EXPECT_EQ(one.sent_by_poll, 1);
    EXPECT_EQ(one.coalesced_by_poll, 1);
    EXPECT_EQ(one.returns, 1);
  });
}

TEST_F(Leases, ThereAreOnlySoManyMembers) {
  std::vector<Counting> many(core::tuning::kMostLeased);
  engine->run_sync([&] {
    lease = Lease::of(*engine, *cq);
    for (Counting& member : many) EXPECT_TRUE(lease->grant(member, true));
    EXPECT_FALSE(lease->grant(one, true));
    EXPECT_EQ(one.lease(), nullptr);
    EXPECT_TRUE(lease->revoke(many[3]));
    EXPECT_TRUE(lease->grant(one, true));
    for (Counting& member : many)
      if (member.lease()) lease->revoke(member);
  });
}

// One alone costs nobody else anything.
TEST_F(Leases, TheIdleOneAmongOthersIsGivenBack) {
  engine->run_sync([&] {
    lease = Lease::of(*engine, *cq);
    lease->grant(one, true);
    for (uint32_t i = 0; i < 2 * core::tuning::kIdleRounds; ++i) poll();
    EXPECT_EQ(one.returns, 0);
    lease->grant(other, true);
    for (uint32_t i = 0; i < core::tuning::kIdleRounds; ++i) {
      one.arrived = true;
      poll();
    }
    EXPECT_EQ(one.returns, 0);
    EXPECT_EQ(other.returns, 1);
  });
}

TEST_F(Leases, AQueueOfAnotherEngineHasNone) {
  const auto elsewhere = test::start_engine();
  grant(one, false);
  elsewhere->run_sync([&] { EXPECT_EQ(Lease::of(*elsewhere, *cq), nullptr); });
}

// Pollers, posters and an engine that grants and revokes: whatever is deferred is sent once, and a
// member that was revoked is left alone.
TEST_F(Leases, UnderChurnNothingIsLeftBehind) {
  std::atomic<bool> over{false};
  std::thread poller([&] {
    while (!over) poll();
  });
  for (int round = 0; round < 5000; ++round) {
    grant_again(one, round % 2 == 0);
    // As a queue pair does it: who is revoked meanwhile sends itself.
    defer(one);
    if (round % 3 == 0) {
      bool taken = false;
      while (!taken) engine->run_sync([&] { taken = !one.lease() || one.lease()->revoke(one); });
      one.deferred = false;
      const int sent = one.sent_by_poll + one.sent_as_old;
      one.deferred = true;
      poll();
      EXPECT_EQ(one.sent_by_poll + one.sent_as_old, sent);
      one.deferred = false;
    } else {
      test::poll_until([&] { return !one.deferred || one.revoked > 0; });
      one.deferred = false;
      one.revoked = 0;
    }
  }
  over = true;
  poller.join();
}

}  // namespace
}  // namespace uiw::progress
