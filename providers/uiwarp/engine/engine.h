// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The engine: a thread that makes progress whether or not the application calls us. It owns one
// io_uring (SINGLE_ISSUER | DEFER_TASKRUN), or an epoll where io_uring is refused. Receiving
// (unless pollers do it), timers and connection set-up run on it. Only engine/ includes liburing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <span>
#include <type_traits>

#include "core/bytes.h"
#include "core/clock.h"
#include "core/list.h"
#include "core/result.h"

namespace uiw::engine {

class Backend;
class Engine;
class OrphanedSocket;
class Op;
class Task;
class Timer;
class Watch;

// What the engine stores in a task, an operation, a timer and a watch.
class TaskState {
  friend class Mailbox;
  Task* next_ = nullptr;
};

class OpState {
 public:
  bool in_flight() const { return in_flight_; }

 private:
  friend class Backend;
  enum class Kind : uint8_t { kReceive, kReadable, kWritable };
  int fd_ = -1;        // its descriptor, for a backend that has to start it again
  uint32_t most_ = 0;  // bytes to receive; 0: no limit
  Kind kind_ = Kind::kReceive;
  bool in_flight_ = false;
  bool cancelling_ = false;
  bool drained_ = false;  // the last receive left the socket empty
  uint8_t receives_ = 0;  // receives started on fd_, up to kReceivesUntilFixed
  int16_t fixed_ = -1;    // index of fd_ in the ring (engine/fixed_files.h); -1: none
  // For operations that have ended and are not completed yet.
  Op* next_ended_ = nullptr;
  int result_ = 0;
};

class TimerState {
 public:
  bool armed() const { return armed_; }

 protected:
  Engine* engine_ = nullptr;

 private:
  friend class TimerHeap;
  core::Nanoseconds deadline_ = 0;
  uint64_t sequence_ = 0;
  bool armed_ = false;
  // Links of the heap: first child, next sibling, previous sibling or (of a first child) parent.
  Timer* child_ = nullptr;
  Timer* next_ = nullptr;
  Timer* prev_ = nullptr;
};

class WatchState {
 public:
  bool watched() const { return watched_; }

 private:
  friend class Watches;
  core::Nanoseconds deadline_ = 0;
  bool watched_ = false;  // written by the engine
  Watch* next_ = nullptr;
  Watch* previous_ = nullptr;
};

// What kind of peer an orphaned socket had.
enum class Standing : uint8_t {
  kPeer,             // the program was connected to it; not limited, as these are no more than it
                     // had connections
  kUnauthenticated,  // it was not authenticated; limited: one more evicts the oldest
};

// Work that any thread hands to the engine thread. Intrusive: the poster owns it, must keep it
// until run() was called, and must not post it again before that.
class Task : public TaskState {
 public:
  virtual void run() = 0;  // on the engine thread

 protected:
  ~Task() = default;
};

// One operation, in flight at most once. Thread: engine. Not movable; must outlive its completion.
// After cancel() the completion still arrives (with -ECANCELED or its normal result).
class Op : public OpState {
 public:
  Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  // `result`: as the system call would return it, or -errno. `data`: only for receive(): the bytes
  // received, valid during the call.
  virtual void complete(int result, core::Bytes data) = 0;

 protected:
  ~Op() = default;
};

// A timer. Arming it again replaces the deadline; destroying it disarms it. Thread: engine.
class Timer : public TimerState {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual void expire() = 0;  // on the engine thread; the timer is disarmed and may be armed again

 protected:
  ~Timer();
};

// A timer whose deadline other threads keep moving. That does not wake the engine; only a deadline
// that passes does. A wake takes the processor from a busy-polling thread for a time slice, and
// costs 10 us or more in a virtual machine. Must not be watched when it is destroyed.
class Watch : public WatchState {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual void expire() = 0;  // on the engine thread; no longer watched, and may be watched again

 protected:
  ~Watch();
};

// A socket that its owner has given up and that still waits for the peer's FIN. It closes by
// itself. When the engine stops, it gets 200 ms and is then evicted. The oldest socket of
// unauthenticated peers is evicted when there are too many. Thread: engine.
class OrphanedSocket {
 public:
  virtual void evict() = 0;  // must call release()

  // Used by the engine.
  core::ListLink<OrphanedSocket> among_orphans;
  Standing standing = Standing::kPeer;

 protected:
  ~OrphanedSocket() = default;
};

class Engine {
 public:
  // Starts the thread with the backend that settings().engine names. errno values: EMFILE, ENOMEM,
  // EAGAIN; EPERM, EACCES or ENOSYS when the settings demand io_uring and the system refuses it.
  static core::Result<std::unique_ptr<Engine>> start();
  // Runs posted tasks, gives orphaned sockets a moment, waits for cancelled operations, then stops
  // and joins the thread. Every operation in flight must be cancelled or belong to an orphaned
  // socket. Thread: any but the engine's.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool on_engine_thread() const;
  // Whether this process is a fork of the one that started the engine: then a wait for the engine
  // would never end. Thread: any.
  bool in_child() const;

  // Posts a task. Wakes the engine if it sleeps, else makes no system call. Lock-free. Tasks of one
  // poster run in the order posted. Does nothing in a forked child. Thread: any.
  void post(Task& task);

  // Runs `call` on the engine thread and waits for it; calls it directly on that thread. The caller
  // must hold no lock that engine code takes. Does nothing in a forked child.
  template <class Call>
  void run_sync(Call&& call);
  // Waits until the engine releases the semaphore. Not in a fork's child. Thread: any but the
  // engine's.
  void wait_for(std::binary_semaphore& released);

  // All below: thread engine.

  // How many orphaned sockets of unauthenticated peers may exist: a share of the process's
  // descriptors. They are all on the first engine, where connections are made.
  static uint32_t most_unauthenticated();
  void adopt(OrphanedSocket& orphan, Standing standing = Standing::kPeer);
  void release(OrphanedSocket& orphan);  // once per adopt()

  void arm(Timer& timer, core::Nanoseconds from_now);
  void disarm(Timer& timer);
  core::Nanoseconds now() const;  // cached once per loop turn

  void watch(Watch& watch, core::Nanoseconds from_now);
  void unwatch(Watch& watch);
  // Moves the deadline, to an earlier or later time. At most one system call. No effect on a watch
  // that is not watched. Thread: any.
  void put_off(Watch& watch, core::Nanoseconds from_now);

  // Operations. Per descriptor, which must be non-blocking, at most one that receives and one that
  // waits to write may be in flight.

  static constexpr size_t kReceiveBuffer = 256 << 10;  // bytes
  // Receives once into a buffer of the engine that is in the cache; complete() gets the bytes, at
  // most `most` (0: what the buffer holds). Result 0 is the end of the stream.
  void receive(Op& op, int fd, uint32_t most = 0);
  // Scratch memory for a caller that receives by itself; valid until the caller returns to the
  // engine. All callers use the same, so it stays in the cache.
  std::span<uint8_t> scratch() const;
  static constexpr size_t kScratch = 128 << 10;  // bytes
  // Called inside complete(): the caller has received this many more bytes by itself. For counters
  // and placement.
  void received_directly(uint64_t octets);
  // This many bytes were sent. For placement.
  void sent(uint64_t octets);
  void poll_readable(Op& op, int fd);  // once; counts as an operation that receives
  void poll_writable(Op& op, int fd);  // once
  void cancel(Op& op);                 // requests it; the completion still comes
  // Call it when an operation will receive no more. Until then the kernel may hold a reference to
  // the socket even after its descriptor was closed. The operation must not be in flight. At most
  // one system call.
  void let_go(Op& op);
  // Submits queued operations now instead of at the end of this turn. Afterwards only its owner has
  // a reference to a descriptor whose operations were all cancelled, so closing it frees its
  // address at once. False when the kernel did not take everything: then such a descriptor must
  // stay open until its operations have ended. One system call.
  bool flush();

  // Counts since the start: sleeps that ended, receives and their bytes, and how often the thread
  // was moved to the CPU of its packets or away from it (engine/placement.h).
  struct Counters {
    std::atomic<uint64_t> wakes{0}, receives{0}, received_octets{0}, moves{0}, departures{0};
  };
  const Counters& counters() const;
  // How many completion queues have affinity to this engine. Thread: any.
  std::atomic<uint32_t>& load();
  const char* backend_name() const;  // "io_uring" or "epoll"

 private:
  Engine();
  struct State;
  std::unique_ptr<State> state_;
  void post_and_wait(Task& task);
};

template <class Call>
void Engine::run_sync(Call&& call) {
  if (on_engine_thread()) {
    call();
    return;
  }
  struct Wrapped final : Task {
    std::remove_reference_t<Call>* call;
    void run() override { (*call)(); }
  } task;
  task.call = &call;
  post_and_wait(task);  // returns after run() has ended and the engine does not use the task any
                        // more
}

// A reference to the engines of this process. It points to the first one, which makes connections
// and serves everything without affinity to another engine. The first user starts it. When the last
// reference goes, all engines are stopped and joined: the first one before the others, as it may
// have to hand a stream to one of them (transport/tcp_stream.h). A forked child gets engines of its
// own. Thread: any but an engine's.
class EngineRef {
 public:
  static core::Result<EngineRef> acquire();
  // Engine `index`, below core::Settings::kMostEngines; 0 is the first one. The first call for an
  // index starts it, with the errno values of Engine::start(). It stays until the last reference
  // goes.
  core::Result<Engine*> at(unsigned index) const;

  EngineRef() = default;
  EngineRef(EngineRef&& other) noexcept;
  EngineRef& operator=(EngineRef&& other) noexcept;
  ~EngineRef();
  Engine& operator*() const { return *engine_; }
  Engine* operator->() const { return engine_; }
  explicit operator bool() const { return engine_; }

 private:
  Engine* engine_ = nullptr;
};

}  // namespace uiw::engine
