// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Interleavings of a few threads in the lock-free places, with every value that C++'s memory model
// lets a load see: what doc/memory-order.md argues. Each suite runs the project's own code; where a
// protocol is spread over several files its steps are named.
#include "modelled.h"

// What has no atomics that matter here, with the standard library's.
#include "core/clock.h"
#include "core/cpu_relax.h"
#include "core/generation.h"
#include "core/list.h"
#include "core/tuning.h"
#include "counters/slot.h"
#include "engine/engine.h"

namespace uiw::core {
inline void let_others_run() {
  rl::yield(1, RL_INFO);
}
}  // namespace uiw::core
#define cpu_relax let_others_run

#define std modelled
#include "core/flag.h"
#include "engine/mailbox.h"
#include "mem/holding.h"
#include "progress/deferral.h"
#include "progress/lease_policy.h"
#include "queue/completion_queue.cc"  // NOLINT: over other atomics than the library has
#include "queue/receive_queue.cc"     // NOLINT: the same
#include "queue/role.h"
#include "queue/spsc_ring.h"
#undef std

namespace uiw {
namespace {

using modelled::memory_order_acquire, modelled::memory_order_acq_rel,
    modelled::memory_order_relaxed, modelled::memory_order_release, modelled::memory_order_seq_cst;

// A variable that only one thread may use at a time: what is not so ordered is a data race, which
// fails the test.
template <class T>
using Plain = rl::var<T>;
template <class T>
T get(const Plain<T>& variable) {
  return const_cast<Plain<T>&>(variable)(RL_INFO);
}
template <class T>
void set(Plain<T>& variable, T value) {
  variable(RL_INFO) = value;
}

// queue/role.h: work that was published before enter() is done by a holder, one at a time.
struct Roles : rl::test_suite<Roles, 2> {
  queue::Role role;
  modelled::atomic<int> work[2];
  Plain<int> done;

  void before() { set(done, 0); }
  void thread(unsigned index) {
    work[index].store(1, memory_order_relaxed);
    if (!role.enter()) return;
    do {
      for (auto& one : work)
        if (one.load(memory_order_relaxed) && one.exchange(0, memory_order_relaxed))
          set(done, get(done) + 1);
    } while (!role.leave());
  }
  void after() { RL_ASSERT(get(done) == 2); }
};

// The same: who sees it free sees what the last holder did.
struct FreeRole : rl::test_suite<FreeRole, 2> {
  queue::Role role;
  Plain<int> done;
  modelled::atomic<int> begun;

  void before() { set(done, 0); }
  void thread(unsigned index) {
    if (index == 0) {
      RL_ASSERT(role.enter());
      begun.store(1, memory_order_release);
      set(done, 1);
      role.leave();
    } else if (begun.load(memory_order_acquire) && !role.held()) {
      RL_ASSERT(get(done) == 1);
    }
  }
};

// queue/spsc_ring.h: what is read is what was written there, and a place is free before it is
// written again.
struct Rings : rl::test_suite<Rings, 2> {
  struct Element {
    Element() = default;
    Element& operator=(const Element& other) {
      set(value, get(other.value));
      return *this;
    }
    Plain<int> value;
  };
  queue::SpscRing<Element> ring;

  void before() { RL_ASSERT(ring.create(1)); }
  void thread(unsigned index) {
    for (int i = 1; i <= 2; ++i) {
      if (index == 0) {
        Element element;
        set(element.value, i);
        while (!ring.push(element)) rl::yield(1, RL_INFO);
      } else {
        Element* front;
        while (!(front = ring.front())) rl::yield(1, RL_INFO);
        RL_ASSERT(get(front->value) == i);
        ring.pop();
      }
    }
  }
};

// engine/mailbox.h: an engine that sleeps while there is a task was told to wake.
struct Mailboxes : rl::test_suite<Mailboxes, 3> {
  struct Note final : engine::Task {
    void run() override {}
    Plain<int> written;
  };
  engine::Mailbox mailbox;
  Note notes[2];
  int seen = 0, wakes = 0;
  bool asleep = false;

  void thread(unsigned index) {
    if (index < 2) {
      set(notes[index].written, 1);
      if (mailbox.push(notes[index])) ++wakes;
      return;
    }
    look();
    asleep = mailbox.try_sleep();
    if (asleep) return;
    mailbox.awake();
    look();
  }
  void look() {
    for (engine::Task* task = mailbox.take_all(); task; task = engine::Mailbox::next(*task))
      seen += get(static_cast<Note*>(task)->written);
  }
  void after() {
    RL_ASSERT(wakes <= 1);
    RL_ASSERT(!asleep || seen == 2 || wakes == 1);
    look();
    RL_ASSERT(seen == 2);
  }
};

// mem/holding.h, as Table::find() and Table::change_access() use it: what an STag names does not
// change under a reader.
struct Holding : rl::test_suite<Holding, 2> {
  static constexpr uint32_t kStag = 7;
  mem::RefCount refs;
  mem::LiveStag live;
  Plain<int> access;

  void before() {
    set(access, 1);
    mem::set_live(live, kStag);
  }
  void thread(unsigned index) {
    if (index == 0) {
      for (int i = 0; i < 2; ++i) {
        if (!mem::hold(refs, live, kStag)) continue;
        RL_ASSERT(get(access) != 0);
        mem::let_go(refs);
      }
      return;
    }
    mem::set_live(live, 0);
    while (mem::is_held(refs)) rl::yield(1, RL_INFO);
    set(access, 2);
    mem::set_live(live, kStag);
  }
};

// progress/deferral.h, with the steps of session/leasing.cc: a post that was left for a poller is
// sent though the lease is revoked meanwhile (may_defer() and on_revoked()).
struct Revoking : rl::test_suite<Revoking, 2> {
  progress::DeferredPosts posts;
  modelled::atomic<int> pollers;
  Plain<int> posted;
  int sent = 0;

  void before() {
    set(posted, 0);
    pollers.store(1, memory_order_relaxed);
  }
  void thread(unsigned index) {
    if (index == 0) {
      set(posted, 1);
      posts.add(1, 1, 1);
      if (!pollers.load(memory_order_seq_cst) && posts.take()) ++sent;
    } else {
      pollers.store(0, memory_order_seq_cst);
      if (!posts.take()) return;
      RL_ASSERT(get(posted) == 1);
      ++sent;
    }
  }
  void after() { RL_ASSERT(sent == 1); }
};

// core/flag.h: who takes a flag down sees what was done before it was put up.
struct Flags : rl::test_suite<Flags, 2> {
  Plain<int> done;
  modelled::atomic<bool> flag;

  void thread(unsigned index) {
    if (index == 0) {
      set(done, 1);
      core::put_up(flag);
    } else if (core::take_down(flag)) {
      RL_ASSERT(get(done) == 1);
    }
  }
};

// progress/deferral.h, with the steps of progress/lease.cc: of what was deferred before the queue
// was armed nothing waits when both the program and a poller that was inside are done (on_arm() and
// leave()).
struct Arming : rl::test_suite<Arming, 2> {
  queue::Role role;
  progress::DeferredPosts posts;
  modelled::atomic<bool> armed;
  int sent = 0;

  void thread(unsigned index) {
    if (index == 0) {
      posts.add(1, 1, 1);
      core::put_up(armed);
      if (role.enter()) leave();
    } else if (role.try_enter()) {
      leave();
    }
  }
  void leave() {
    do {
      if (core::take_down(armed) && posts.take()) ++sent;
    } while (!role.leave());
  }
  void after() { RL_ASSERT(sent == 1); }
};

// progress/lease_policy.h, with the steps of look_in() and deferred(): what is deferred while a
// poller puts the engine's look off is due soon.
struct Looking : rl::test_suite<Looking, 2> {
  static constexpr uint64_t kSoon = 10, kLate = 1000, kNow = 1;
  progress::LookPlan plan{kSoon, kLate};
  progress::DeferredPosts posts;
  bool is_soon = false;

  void before() { plan.set(kNow, kSoon); }
  void thread(unsigned index) {
    if (index == 0) {
      posts.add(1, 1, kNow);
      if (plan.deferred(kNow)) is_soon = true;
    } else {
      plan.set(kNow, kLate);
      if (posts.waits_since() != UINT64_MAX) is_soon = true;
    }
  }
  void after() { RL_ASSERT(is_soon); }
};

// queue/receive_queue.h, with the steps of session/queue_pair.cc and lifecycle.cc: a receive that
// is posted while the queue pair goes to ERR is flushed (post_recv() and fail_receives()).
struct Flushing : rl::test_suite<Flushing, 2> {
  modelled::unique_ptr<queue::ReceiveQueue> queue;
  modelled::atomic<int> error;
  core::Spinlock flush_lock;
  bool flushes = false;  // under flush_lock
  int flushed = 0;       // the same

  void before() { queue = queue::ReceiveQueue::create(2, 1); }
  void thread(unsigned index) {
    if (index == 0) {
      ibv_recv_wr wr{};
      ibv_recv_wr* list = &wr;
      RL_ASSERT(queue->post(list) == 0);
      if (error.load(memory_order_acquire)) flush();
    } else {
      error.store(1, memory_order_release);
      queue->await_posts();
      flush_lock.lock();
      flushes = true;
      flush_lock.unlock();
      flush();
    }
  }
  void flush() {
    flush_lock.lock();
    queue::Receive receive;
    bool below;
    while (flushes && queue->take(receive, below)) ++flushed;
    flush_lock.unlock();
  }
  void after() {
    RL_ASSERT(flushed == 1);
    queue.reset();
  }
};

// queue/completion_queue.h: who arms and then polls in vain gets an event.
struct Events : queue::CompletionEvents {
  modelled::atomic<int> told{0};
  void on_completion_event() override { told.fetch_add(1, memory_order_relaxed); }
  void on_overflow() override {}
};

template <class Suite>
struct OfOneQueue : rl::test_suite<Suite, 2> {
  Events events;
  modelled::atomic<uint64_t> freed;
  modelled::unique_ptr<queue::CompletionQueue> cq;
  modelled::unique_ptr<queue::CompletionSource> source;
  int polled = 0;

  modelled::unique_ptr<queue::CompletionSource> make_source() {
    return modelled::make_unique<queue::CompletionSource>(queue::CompletionSource::Kind::kOwnQueue,
                                                          freed);
  }
  void before() {
    cq = queue::CompletionQueue::create(2, &events);
    source = make_source();
  }
};

struct Completions : OfOneQueue<Completions> {
  void thread(unsigned index) {
    if (index == 0) {
      cq->push({{}, source.get(), 1}, true);
    } else {
      ibv_wc wc;
      cq->arm(false);
      polled = cq->poll(1, &wc);
    }
  }
  void after() {
    RL_ASSERT(polled == 1 || events.told.load(memory_order_relaxed) == 1);
    RL_ASSERT(polled == 0 || freed.load(memory_order_relaxed) == 1);
    cq.reset();
  }
};

// The same: who arms last hears of what has come before, also while another thread polls what is
// left of a queue pair that is gone.
struct Purged : OfOneQueue<Purged> {
  void before() {
    OfOneQueue::before();
    auto gone = make_source();
    cq->push({{}, gone.get(), 1}, true);
    cq->purge(modelled::move(gone));
  }
  void thread(unsigned index) {
    if (index == 0) {
      ibv_wc wc;
      polled = cq->poll(1, &wc);
    } else {
      cq->push({{}, source.get(), 1}, true);
      cq->arm(false);
    }
  }
  void after() {
    RL_ASSERT(polled == 1 || events.told.load(memory_order_relaxed) == 1);
    cq.reset();
  }
};

// All of them where they are few enough, else so many that are chosen at random.
template <class Suite>
bool holds(const char* name, rl::iteration_t chosen = 0) {
  rl::test_params how;
  how.search_type = chosen ? rl::random_scheduler_type : rl::fair_full_search_scheduler_type;
  how.iteration_count = chosen;
  modelled::ostream nowhere(nullptr);
  how.progress_stream = &nowhere;  // how.output_stream gets the history of an execution that fails
  const bool good = rl::simulate<Suite>(how);
  modelled::cout << (good ? "passed " : "FAILED ") << name << ": " << how.stop_iteration
                 << " executions" << (chosen ? " at random" : "") << modelled::endl;
  return good;
}

}  // namespace
}  // namespace uiw

// What has failed leaves its memory behind, so nothing follows it.
int main() {
  using namespace uiw;
  const bool good = holds<Roles>("Roles") && holds<FreeRole>("FreeRole") &&
                    holds<Rings>("Rings", 30000) && holds<Mailboxes>("Mailboxes", 30000) &&
                    holds<Holding>("Holding", 30000) && holds<Revoking>("Revoking") &&
                    holds<Flags>("Flags") && holds<Arming>("Arming") && holds<Looking>("Looking") &&
                    holds<Flushing>("Flushing", 30000) &&
                    holds<Completions>("Completions", 30000) && holds<Purged>("Purged", 30000);
  return good ? 0 : 1;
}
