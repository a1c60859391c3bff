// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/engine.h"

#include <pthread.h>
#include <semaphore.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "core/assert.h"
#include "core/descriptor_shares.h"
#include "core/generation.h"
#include "core/log.h"
#include "core/no_cancellation.h"
#include "core/own_thread.h"
#include "core/pages.h"
#include "core/settings.h"
#include "core/valgrind.h"
#include "engine/epoll.h"
#include "engine/mailbox.h"
#include "engine/ring.h"
#include "engine/steering.h"
#include "engine/timer_heap.h"
#include "engine/watches.h"

namespace uiw::engine {
namespace {

// How long orphaned sockets may wait for their peers' FIN when the engine stops.
constexpr core::Nanoseconds kStopGrace = 200 * core::kMillisecond;

core::Result<std::unique_ptr<Backend>> open_backend(core::EngineKind kind) {
  if (kind == core::EngineKind::kEpoll) return Epoll::open();
  // Valgrind (3.19) lets no other thread run while one waits in io_uring_enter().
  if (core::under_valgrind()) {
    const bool insists = kind == core::EngineKind::kIoUring;
    core::log(insists ? core::LogLevel::kError : core::LogLevel::kInfo,
              "valgrind cannot run io_uring; %s",
              insists ? "unset UIWARP_ENGINE to use epoll" : "using epoll");
    if (insists) return core::Errno{ENOSYS};
    return Epoll::open();
  }
  auto ring = Ring::open();
  // EACCES: of a security module, or of a filter that has that errno.
  const bool refused =
      !ring && (ring.error() == ENOSYS || ring.error() == EPERM || ring.error() == EACCES);
  if (!refused || kind == core::EngineKind::kIoUring) return ring;
  core::log(core::LogLevel::kWarn,
            "this system refuses io_uring (%s); using epoll, which works as well and is a little "
            "slower. UIWARP_ENGINE=epoll asks for it without this message",
            ring.error() == ENOSYS ? "Linux 5.19 or newer has what is needed" : "not permitted");
  return Epoll::open();
}

}  // namespace

using Orphans = core::List<OrphanedSocket, &OrphanedSocket::among_orphans>;

struct Engine::State {
  // The engine thread. Posters read these members with each message, so they rarely change.
  pthread_t thread{};
  const unsigned generation = core::generation();  // of the process that started the thread
  std::atomic<bool> stopping{false};
  std::atomic<uint32_t> load{0};

  // Shared by all threads.
  Mailbox mailbox;
  std::unique_ptr<Backend> backend;  // opened by the engine thread, wake() from any
  Counters counters;

  // Set-up: guarded by mutex, every change is followed by a broadcast.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  bool started = false;
  int start_error = 0;

  // Thread: engine.
  TimerHeap timers;
  Watches watches;
  // Read once per turn, when it is first needed: bytes that have arrived are handled first.
  core::Nanoseconds turn_time = 0;  // 0: not read yet
  Orphans orphans[2];               // by standing, oldest first
  core::Pages scratch;
  uint64_t direct_octets = 0;  // received_directly() in this turn
  uint64_t sent_octets = 0;    // since the last turn that delivered bytes
  core::Nanoseconds evict_at = Backend::kForever;

  ~State() {
    pthread_cond_destroy(&changed);
    pthread_mutex_destroy(&mutex);
  }

  void open();
  void loop();
  void run_tasks();
  // No other thread writes the counters.
  static void add(std::atomic<uint64_t>& counter, uint64_t more) {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  bool has_orphans() const { return !orphans[0].empty() || !orphans[1].empty(); }
  bool may_leave();
  core::Nanoseconds sleep_until() const;

  core::Nanoseconds now() {
    if (turn_time == 0) turn_time = core::now();
    return turn_time;
  }
};

// While stopping: whether the thread may end.
bool Engine::State::may_leave() {
  if (has_orphans() && evict_at == Backend::kForever) evict_at = now() + kStopGrace;
  if (has_orphans() && now() < evict_at) return false;
  for (Orphans& of : orphans) {
    while (OrphanedSocket* oldest = of.first()) oldest->evict();
  }
  watches.stop();
  // An operation that was not cancelled might never end.
  UIW_ASSERT(backend->not_cancelled() == 0);
  return backend->in_flight() == 0;
}

// Opens the backend (io_uring belongs to the thread that made it) and tells start() how it went.
void Engine::State::open() {
  auto result = open_backend(core::settings().engine);
  int error = result ? 0 : result.error();
  if (!error) error = watches.open(**result);
  pthread_mutex_lock(&mutex);
  start_error = error;
  if (!error) backend = std::move(*result);
  started = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

void Engine::State::run_tasks() {
  for (Task* task = mailbox.take_all(); task;) {
    Task* next = Mailbox::next(*task);
    task->run();
    task = next;
  }
}

core::Nanoseconds Engine::State::sleep_until() const {
  const core::Nanoseconds timer = timers.empty() ? Backend::kForever : timers.next_deadline();
  return has_orphans() ? std::min(evict_at, timer) : timer;
}

void Engine::State::loop() {
  Steering::shorten_slice();
  Steering steering(core::settings().engine_cpu == core::EngineCpu::kFollow);
  for (;;) {
    run_tasks();
    timers.expire(now());
    if (stopping.load(std::memory_order_acquire) && may_leave()) break;

    const core::Nanoseconds until = mailbox.try_sleep() ? sleep_until() : Backend::kAtOnce;
    backend->wait(until);
    mailbox.awake();
    turn_time = 0;

    Delivered delivered = backend->dispatch();
    delivered.octets += std::exchange(direct_octets, 0);
    if (until != Backend::kAtOnce) add(counters.wakes, 1);
    if (delivered.receives == 0) continue;
    add(counters.receives, delivered.receives);
    add(counters.received_octets, delivered.octets);
    switch (steering.turn(delivered.octets, std::exchange(sent_octets, 0), delivered.fd)) {
      case Placement::Action::kFollow:
        add(counters.moves, 1);
        break;
      case Placement::Action::kKeepAway:
        add(counters.departures, 1);
        break;
      case Placement::Action::kStay:
        break;
    }
  }
  watches.close();
  // The backend object stays until the thread is joined: a poster may still be in wake().
  backend->close();
}

Engine::Engine() : state_(new (std::nothrow) State) {}

core::Result<std::unique_ptr<Engine>> Engine::start() {
  std::unique_ptr<Engine> engine(new (std::nothrow) Engine);
  if (!engine || !engine->state_) return core::Errno{ENOMEM};
  State& state = *engine->state_;
  state.scratch = core::allocate_pages(kScratch);
  if (!state.scratch) {
    engine->state_.reset();
    return core::Errno{ENOMEM};
  }

  const auto main = [](void* argument) {
    State& self = *static_cast<State*>(argument);
    self.open();
    if (self.backend) self.loop();
  };
  int error = core::start_thread(core::OwnThread::kEngine, main, &state, &state.thread);
  if (error != 0) {
    engine->state_.reset();
    return core::Errno{error};
  }
  const core::NoCancellation waiting;  // the caller may hold the lock of engine_ref.cc
  pthread_mutex_lock(&state.mutex);
  while (!state.started) pthread_cond_wait(&state.changed, &state.mutex);
  error = state.start_error;
  pthread_mutex_unlock(&state.mutex);
  if (error != 0) {
    pthread_join(state.thread, nullptr);
    engine->state_.reset();
    return core::Errno{error};
  }
  return engine;
}

Engine::~Engine() {
  if (!state_) return;  // start() failed
  if (in_child()) {
    // The thread, its ring and its operations are the parent's.
    static_cast<void>(state_.release());
    return;
  }
  UIW_ASSERT(!on_engine_thread());
  struct Stop final : Task {
    State* state;
    void run() override { state->stopping.store(true, std::memory_order_release); }
  } stop;
  stop.state = state_.get();
  const core::NoCancellation waiting;
  post(stop);
  pthread_join(state_->thread, nullptr);
}

uint32_t Engine::most_unauthenticated() {
  return core::number_of_descriptors(core::kRefused);
}

void Engine::adopt(OrphanedSocket& orphan, Standing standing) {
  orphan.standing = standing;
  Orphans& with = state_->orphans[static_cast<size_t>(standing)];
  if (standing == Standing::kUnauthenticated && with.size() >= most_unauthenticated())
    with.first()->evict();
  with.append(orphan);
}

void Engine::release(OrphanedSocket& orphan) {
  state_->orphans[static_cast<size_t>(orphan.standing)].remove(orphan);
}

bool Engine::on_engine_thread() const {
  return pthread_equal(state_->thread, pthread_self()) != 0;
}

bool Engine::in_child() const {
  return state_->generation != core::generation();
}

void Engine::post(Task& task) {
  if (in_child()) return;
  if (state_->mailbox.push(task)) state_->backend->wake();
}

void Engine::post_and_wait(Task& task) {
  if (in_child()) return;
  const core::NoCancellation guard;  // the task is on this stack
  struct Waited final : Task {
    Task* inner;
    sem_t done;
    void run() override {
      inner->run();
      sem_post(&done);  // the waiter may free this before sem_post() returns, which sem_post()
                        // permits
    }
  } waited;
  waited.inner = &task;
  sem_init(&waited.done, 0, 0);
  post(waited);
  while (sem_wait(&waited.done) != 0) {
  }
  sem_destroy(&waited.done);
}

void Engine::wait_for(std::binary_semaphore& released) {
  UIW_ASSERT(!on_engine_thread());
  released.acquire();
}

void Engine::arm(Timer& timer, core::Nanoseconds from_now) {
  state_->timers.arm(this, timer, state_->now() + from_now);
}
void Engine::disarm(Timer& timer) {
  state_->timers.disarm(timer);
}
void Engine::watch(Watch& watch, core::Nanoseconds from_now) {
  // Not now(): in a long turn its time may be older than `from_now`.
  state_->watches.watch(watch, core::now() + from_now);
}
void Engine::unwatch(Watch& watch) {
  state_->watches.unwatch(watch);
}
void Engine::put_off(Watch& watch, core::Nanoseconds from_now) {
  state_->watches.put_off(watch, core::now() + from_now);
}
core::Nanoseconds Engine::now() const {
  return state_->now();
}

Timer::~Timer() {
  if (armed()) engine_->disarm(*this);
}

Watch::~Watch() {
  UIW_ASSERT(!watched());
}

void Engine::receive(Op& op, int fd, uint32_t most) {
  state_->backend->receive(op, fd, most);
}
std::span<uint8_t> Engine::scratch() const {
  return {state_->scratch.get(), kScratch};
}
void Engine::received_directly(uint64_t octets) {
  state_->direct_octets += octets;
}
void Engine::sent(uint64_t octets) {
  state_->sent_octets += octets;
}
void Engine::poll_readable(Op& op, int fd) {
  state_->backend->poll_readable(op, fd);
}

void Engine::poll_writable(Op& op, int fd) {
  state_->backend->poll_writable(op, fd);
}
void Engine::cancel(Op& op) {
  state_->backend->cancel(op);
}
void Engine::let_go(Op& op) {
  state_->backend->let_go(op);
}
bool Engine::flush() {
  return state_->backend->flush();
}

std::atomic<uint32_t>& Engine::load() {
  return state_->load;
}

const Engine::Counters& Engine::counters() const {
  return state_->counters;
}
const char* Engine::backend_name() const {
  return state_->backend->name();
}

}  // namespace uiw::engine
