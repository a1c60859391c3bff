// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "sim/sim_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/list.h"
#include "core/pages.h"
#include "engine/backend.h"
#include "engine/mailbox.h"
#include "engine/timer_heap.h"
#include "engine/watches.h"
#include "sim/sim_kernel.h"

namespace uiw::engine {

namespace {

using test::Kernel;

// Operations on the simulated kernel's descriptors.
class SimBackend final : public Backend {
 public:
  void receive(Op& op, int fd, uint32_t most) override {
    set_most(op, most);
    start(op, Kind::kReceive, fd);
  }
  void poll_readable(Op& op, int fd) override { start(op, Kind::kReadable, fd); }
  void poll_writable(Op& op, int fd) override { start(op, Kind::kWritable, fd); }
  void cancel(Op& op) override {
    if (!mark_cancelling(op)) return;
    std::erase(ops_, &op);
    end_later(op, -ECANCELED);
  }
  void wait(core::Nanoseconds) override {}
  // One that can be completed, by chance.
  Delivered dispatch() override {
    Delivered delivered;
    if (any_ended()) {
      complete_ended();
      delivered.receives = 1;
      return delivered;
    }
    std::vector<Op*> ready;
    std::copy_if(ops_.begin(), ops_.end(), std::back_inserter(ready),
                 [](const Op* op) { return is_ready(*op); });
    if (ready.empty()) return delivered;
    Op& op = *ready[Kernel::current().random() % ready.size()];
    std::erase(ops_, &op);
    delivered.receives = 1;
    if (kind_of(op) != Kind::kReceive) {
      complete(op, 0, {});
      return delivered;
    }
    const size_t most = most_of(op) > 0 ? most_of(op) : Engine::kReceiveBuffer;
    buffer_.resize(most);
    const iovec whole{buffer_.data(), most};
    const long got = Kernel::current().receive(fd_of(op), {&whole, 1});
    if (got == -EAGAIN) {  // somebody else was quicker
      ops_.push_back(&op);
      return delivered;
    }
    complete(op, static_cast<int>(got), {buffer_.data(), got > 0 ? static_cast<size_t>(got) : 0});
    return delivered;
  }
  bool flush() override { return true; }
  void wake() override {}
  void close() override {}
  const char* name() const override { return "simulated"; }

 private:
  void start(Op& op, Kind kind, int fd) {
    begin(op, kind, fd);
    ops_.push_back(&op);
  }
  static bool is_ready(const Op& op) {
    const Kernel& kernel = Kernel::current();
    return kind_of(op) == Kind::kWritable ? kernel.is_writable(fd_of(op))
                                          : kernel.is_readable(fd_of(op));
  }

  std::vector<Op*> ops_;
  std::vector<uint8_t> buffer_;
};

// Whose turn it is. Turns can be nested: another engine's in the middle of a system call.
const Engine* g_turn = nullptr;

struct Simulated {
  Mailbox mailbox;
  TimerHeap timers;
  Watches watches;
  SimBackend backend;
  core::List<OrphanedSocket, &OrphanedSocket::among_orphans> orphans;
  core::Pages scratch = core::allocate_pages(Engine::kScratch);
  std::atomic<uint32_t> load{0};
  Engine::Counters counters;
  bool inside = false;

  template <class Call>
  auto as_thread_of(const Engine* engine, Call call) {
    const Engine* const before = std::exchange(g_turn, engine);
    inside = true;
    const auto result = call();
    inside = false;
    g_turn = before;
    return result;
  }
  bool run_tasks() {
    Task* task = mailbox.take_all();
    const bool any = task != nullptr;
    while (task) {
      Task* const next = Mailbox::next(*task);
      task->run();
      task = next;
    }
    return any;
  }
  bool turn() {
    bool done = run_tasks();
    if (!timers.empty() && timers.next_deadline() <= Kernel::current().now()) {
      timers.expire(Kernel::current().now());
      done = true;
    }
    return backend.dispatch().receives > 0 || done;
  }
};

std::map<Engine*, Simulated*> g_engines;

}  // namespace

struct Engine::State : Simulated {};

Engine::Engine() : state_(new State) {
  g_engines[this] = state_.get();
}

core::Result<std::unique_ptr<Engine>> Engine::start() {
  std::unique_ptr<Engine> engine(new Engine);
  EXPECT_EQ(engine->state_->watches.open(engine->state_->backend), 0);
  return engine;
}

Engine::~Engine() {
  State& s = *state_;
  g_engines.erase(this);
  s.as_thread_of(this, [&] {
    while (s.turn()) {
    }
    while (OrphanedSocket* oldest = s.orphans.first()) oldest->evict();
    s.watches.stop();
    while (s.turn()) {
    }
    EXPECT_EQ(s.backend.in_flight(), 0u);
    s.watches.close();
    return true;
  });
}

bool Engine::on_engine_thread() const {
  return g_turn == this;
}
bool Engine::in_child() const {
  return false;
}
void Engine::post(Task& task) {
  state_->mailbox.push(task);
}
void Engine::post_and_wait(Task& task) {
  ASSERT_FALSE(state_->inside) << "waits for an engine that is waiting for it";
  post(task);
  state_->as_thread_of(this, [&] { return state_->run_tasks(); });
}
void Engine::wait_for(std::binary_semaphore& released) {
  Kernel& kernel = Kernel::current();
  while (!released.try_acquire()) {
    ASSERT_FALSE(state_->inside) << "waits for an engine that is waiting for it";
    kernel.pass(core::kMicrosecond);
    if (test::take_turn(*this)) continue;
    bool moved = false;
    core::Nanoseconds next = kernel.next_timer();
    for (const auto& [engine, state] : g_engines) {
      moved |= engine != this && test::take_turn(*engine);
      next = std::min(next, test::next_deadline(*engine));
    }
    if (moved) continue;
    ASSERT_LT(next, Kernel::kNever) << "nobody will ever release it";
    kernel.advance_to(next);
  }
}
void Engine::adopt(OrphanedSocket& orphan, Standing standing) {
  orphan.standing = standing;
  state_->orphans.append(orphan);
}
void Engine::release(OrphanedSocket& orphan) {
  state_->orphans.remove(orphan);
}
void Engine::arm(Timer& timer, core::Nanoseconds from_now) {
  state_->timers.arm(this, timer, now() + from_now);
}
void Engine::disarm(Timer& timer) {
  state_->timers.disarm(timer);
}
core::Nanoseconds Engine::now() const {
  return Kernel::current().now();
}
void Engine::watch(Watch& watch, core::Nanoseconds from_now) {
  state_->watches.watch(watch, now() + from_now);
}
void Engine::unwatch(Watch& watch) {
  state_->watches.unwatch(watch);
}
void Engine::put_off(Watch& watch, core::Nanoseconds from_now) {
  state_->watches.put_off(watch, now() + from_now);
}
Timer::~Timer() {
  if (armed()) engine_->disarm(*this);
}
Watch::~Watch() {
  EXPECT_FALSE(watched());
}
void Engine::receive(Op& op, int fd, uint32_t most) {
  state_->backend.receive(op, fd, most);
}
std::span<uint8_t> Engine::scratch() const {
  return {state_->scratch.get(), kScratch};
}
void Engine::received_directly(uint64_t) {}
void Engine::sent(uint64_t) {}
void Engine::poll_readable(Op& op, int fd) {
  state_->backend.poll_readable(op, fd);
}
void Engine::poll_writable(Op& op, int fd) {
  state_->backend.poll_writable(op, fd);
}
void Engine::cancel(Op& op) {
  state_->backend.cancel(op);
}
void Engine::let_go(Op&) {}
bool Engine::flush() {
  return true;
}
std::atomic<uint32_t>& Engine::load() {
  return state_->load;
}
const Engine::Counters& Engine::counters() const {
  return state_->counters;
}
const char* Engine::backend_name() const {
  return state_->backend.name();
}

}  // namespace uiw::engine

namespace uiw::test {

bool take_turn(engine::Engine& engine) {
  engine::Simulated& state = *engine::g_engines.at(&engine);
  if (state.inside) return false;
  return state.as_thread_of(&engine, [&] { return state.turn(); });
}

core::Nanoseconds next_deadline(engine::Engine& engine) {
  const engine::Simulated& state = *engine::g_engines.at(&engine);
  return state.timers.empty() ? Kernel::kNever : state.timers.next_deadline();
}

}  // namespace uiw::test
