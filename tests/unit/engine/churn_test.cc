// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What an engine keeps (sockets in their last seconds, watches, files by number), while it comes
// and goes by the million.
#include <gtest/gtest.h>
#include <liburing.h>
#include <poll.h>
#include <unistd.h>

#include <list>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/backend.h"
#include "engine/fixed_files.h"
#include "engine/watches.h"
#include "unit/engine/support.h"

namespace uiw::engine {
namespace {

class EngineChurn : public testing::TestWithParam<uint32_t> {
 protected:
  size_t below(size_t end) { return random_() % end; }
  std::mt19937 random_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(BySeed, EngineChurn, testing::Values(1, 2));

// ---- orphaned sockets ----

struct LastSeconds final : OrphanedSocket {
  void evict() override {
    engine->release(*this);
    ++evicted;
    there = false;
  }
  Engine* engine = nullptr;
  bool there = false;
  int evicted = 0;
};

TEST_P(EngineChurn, TheOldestStrangerGoesAndNobodyElse) {
  auto engine = test::start_engine();
  const size_t most = Engine::most_unauthenticated();
  std::vector<LastSeconds> peers(50), strangers(2 * most);
  for (std::vector<LastSeconds>* all : {&peers, &strangers})
    for (LastSeconds& each : *all) each.engine = engine.get();
  engine->run_sync([&] {
    int went = 0;
    std::list<LastSeconds*> model;  // strangers, oldest first
    std::vector<std::list<LastSeconds*>::iterator> at(strangers.size());
    for (int step = 0; step < 200'000 && !testing::Test::HasFailure(); ++step) {
      const bool stranger = below(4) > 0;
      const size_t i = below(stranger ? strangers.size() : peers.size());
      LastSeconds& guest = stranger ? strangers[i] : peers[i];
      if (guest.there && below(8) > 0) continue;  // so that there are as many as may be
      if (guest.there) {
        engine->release(guest);
        guest.there = false;
        if (stranger) model.erase(at[i]);
        continue;
      }
      LastSeconds* const oldest = stranger && model.size() >= most ? model.front() : nullptr;
      const int evicted = oldest ? oldest->evicted : 0;
      engine->adopt(guest, stranger ? Standing::kUnauthenticated : Standing::kPeer);
      guest.there = true;
      if (stranger) at[i] = model.insert(model.end(), &guest);
      if (!oldest) continue;
      ASSERT_EQ(oldest->evicted, evicted + 1);
      ASSERT_FALSE(oldest->there);
      model.pop_front();
      ++went;
    }
    EXPECT_GT(went, 1000);
    size_t there = 0;
    for (const LastSeconds& each : strangers) there += each.there;
    EXPECT_EQ(there, model.size());
  });
  // The rest goes with the engine, once.
  std::vector<std::pair<LastSeconds*, int>> last;
  for (std::vector<LastSeconds>* all : {&peers, &strangers})
    for (LastSeconds& each : *all) last.emplace_back(&each, each.evicted + each.there);
  engine.reset();
  for (const auto& [guest, evicted] : last) {
    EXPECT_FALSE(guest->there);
    EXPECT_EQ(guest->evicted, evicted);
  }
}

// ---- watches ----

// Starts nothing: the test says when an operation has ended.
class HandBackend final : public Backend {
 public:
  void end(Op& op) { complete(op, POLLIN, {}); }
  void receive(Op&, int, uint32_t) override {}
  void poll_readable(Op& op, int fd) override { begin(op, Kind::kReadable, fd); }
  void poll_writable(Op&, int) override {}
  void cancel(Op&) override {}
  void wait(core::Nanoseconds) override {}
  Delivered dispatch() override { return {}; }
  bool flush() override { return true; }
  void wake() override {}
  void close() override {}
  const char* name() const override { return "hand"; }
};

struct Watched final : Watch {
  void expire() override {
    ++expired;
    if (again) watches->watch(*this, kNever);
  }
  static constexpr core::Nanoseconds kDue = 1, kNever = INT64_MAX / 2;
  Watches* watches = nullptr;
  int expired = 0;
  bool again = false;
};

TEST_P(EngineChurn, ThoseThatAreDueExpireAndNoOthers) {
  HandBackend backend;
  Watches watches;
  ASSERT_EQ(watches.open(backend), 0);
  struct Expected {
    bool watched = false, due = false;
    int expired = 0;
  };
  std::vector<Watched> all(30);
  std::vector<Expected> model(all.size());
  for (Watched& each : all) each.watches = &watches;
  for (int step = 0; step < 150'000 && !testing::Test::HasFailure(); ++step) {
    const size_t i = below(all.size());
    const bool due = below(8) == 0;
    switch (below(4)) {
      case 0:
      case 1:
        watches.watch(all[i], due ? Watched::kDue : Watched::kNever);
        model[i].watched = true;
        model[i].due = due;
        break;
      case 2:
        watches.unwatch(all[i]);
        model[i].watched = false;
        break;
      default:
        if (!model[i].watched) break;
        watches.put_off(all[i], due ? Watched::kDue : Watched::kNever);
        model[i].due = due;
    }
    ASSERT_EQ(all[i].watched(), model[i].watched);
    if (step % 50 > 0 || !watches.in_flight()) continue;
    for (Watched& each : all) each.again = below(4) == 0;
    backend.end(watches);
    for (size_t k = 0; k < all.size(); ++k) {
      if (model[k].watched && model[k].due) {
        ++model[k].expired;
        model[k] = {all[k].again, false, model[k].expired};
      }
      ASSERT_EQ(all[k].expired, model[k].expired) << k;
      ASSERT_EQ(all[k].watched(), model[k].watched) << k;
    }
  }
  watches.stop();
  for (const Watched& each : all) EXPECT_FALSE(each.watched());
  watches.close();
}

// ---- files that a ring knows by number ----

class FilesByNumber : public EngineChurn {
 protected:
  void SetUp() override {
    if (const int error = io_uring_queue_init(8, &ring_, 0); error < 0)
      GTEST_SKIP() << "no io_uring here: " << strerror(-error);
    // Older kernels let go later, and are not asked here whether they have.
    ring_.features |= 1u << 16;
    files_.open(ring_);
    opened_ = true;
  }
  void TearDown() override {
    if (opened_) io_uring_queue_exit(&ring_);
  }
  io_uring ring_{};
  FixedFiles files_;
  bool opened_ = false;
};
INSTANTIATE_TEST_SUITE_P(BySeed, FilesByNumber, testing::Values(1, 2));

TEST_P(FilesByNumber, EachNumberIsOnesAndComesBack) {
  const int fd = dup(STDIN_FILENO);
  std::set<int16_t> taken;
  const auto add = [&] {
    const int16_t number = files_.add(fd);
    ASSERT_EQ(number >= 0, taken.size() < FixedFiles::kCount);
    if (number < 0) return;
    ASSERT_LT(number, static_cast<int>(FixedFiles::kCount));
    ASSERT_TRUE(taken.insert(number).second) << "two have " << number;
  };
  for (int step = 0; step < 200'000 && !testing::Test::HasFailure(); ++step) {
    const bool filling = step / 1000 % 2 == 0;
    if (taken.empty() || (below(4) > 0) == filling) {
      add();
    } else {
      auto one = taken.lower_bound(static_cast<int16_t>(below(FixedFiles::kCount)));
      if (one == taken.end()) one = taken.begin();
      files_.remove(*one);
      taken.erase(one);
    }
  }
  for (const int16_t number : taken) files_.remove(number);
  taken.clear();
  for (unsigned i = 0; i <= FixedFiles::kCount; ++i) add();
  EXPECT_EQ(taken.size(), FixedFiles::kCount);
  close(fd);
}

}  // namespace
}  // namespace uiw::engine
