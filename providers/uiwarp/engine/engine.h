// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The thread that makes progress whether or not the application calls us. Owns one io_uring
// (SINGLE_ISSUER | DEFER_TASKRUN), or an epoll where io_uring is refused; all receive work, timers
// and connection set-up run on it. Only engine/ includes liburing.
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

// What the engine keeps in a task, an operation, a timer and a watch.
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
  int fd_ = -1;        // what it works on, for a backend that has to start it again
  uint32_t most_ = 0;  // bytes to receive; 0: no limit
  Kind kind_ = Kind::kReceive;
  bool in_flight_ = false;
  bool cancelling_ = false;
  bool drained_ = false;  // the last receive left the socket empty
  uint8_t receives_ = 0;  // begun on fd_, up to kReceivesUntilFixed
  int16_t fixed_ = -1;    // index of fd_ in the ring (engine/fixed_files.h); -1: none
  // Waiting to be completed with a result that is known already.
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
  bool watched_ = false;  // the engine writes
  Watch* next_ = nullptr;
  Watch* previous_ = nullptr;
};

// Whose socket an orphaned one was.
enum class Standing : uint8_t {
  kPeer,             // of a peer that the program was connected to: as many as it had connections
  kUnauthenticated,  // of an unauthenticated peer: limited, and one more evicts the oldest
};

// Work handed to the engine thread from any thread. Intrusive: the poster owns it and must keep it
// until run() was called; a task must not be posted again before that.
class Task : public TaskState {
 public:
  virtual void run() = 0;  // on the engine thread

 protected:
  ~Task() = default;
};

// One operation in flight in the ring. Thread: engine. Not movable; must outlive its completion.
// After cancel() the completion still arrives (with -ECANCELED or its normal result).
class Op : public OpState {
 public:
  Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  // result: as the system call would give it, or -errno. `data` is only set for receive(): the
  // bytes received, valid during the call.
  virtual void complete(int result, core::Bytes data) = 0;

 protected:
  ~Op() = default;
};

// A deadline. Thread: engine. Re-arming replaces; destroying cancels.
class Timer : public TimerState {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual void expire() = 0;  // on the engine thread; the timer is disarmed and may be armed again

 protected:
  ~Timer();
};

// A deadline that other threads renew again and again. The engine does not wake for that, only when
// none renews it any more: a wake takes the processor from a busy-polling thread for a time slice,
// and costs a virtual machine 10 us or more. Must not be watched when it is destroyed.
class Watch : public WatchState {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual void expire() = 0;  // on the engine thread; it is not watched, and may be again

 protected:
  ~Watch();
};

// A socket that its owner has given up while it still waits for the peer's FIN. It ends itself;
// when the engine stops it gets 200 ms, then it is evicted. So is the oldest socket of
// unauthenticated peers when there are too many. Thread: engine.
class OrphanedSocket {
 public:
  virtual void evict() = 0;  // must call release()

  // Of the engine.
  core::ListLink<OrphanedSocket> among_orphans;
  Standing standing = Standing::kPeer;

 protected:
  ~OrphanedSocket() = default;
};

class Engine {
 public:
  // Starts the thread, on the backend that settings().engine names. errno values: EMFILE, ENOMEM,
  // EAGAIN; EPERM or ENOSYS when the settings want io_uring and the system refuses it.
  static core::Result<std::unique_ptr<Engine>> start();
  // Runs what was posted, gives orphaned sockets a moment, waits for cancelled operations, then
  // stops and joins the thread. No operation may be in flight that was neither cancelled nor is an
  // orphaned socket's. Thread: any but the engine's.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool on_engine_thread() const;
  // Whether this process is a fork of the one that started the engine: then nothing that waits for
  // it would ever end. Thread: any.
  bool in_child() const;

  // Thread: any. Wakes the engine if it sleeps; no system call otherwise. Lock-free. Tasks of one
  // poster run in the order posted. After fork() the child's call does nothing.
  void post(Task& task);

  // Runs `call` on the engine thread and waits for it; directly when already on it.
  // No lock that engine code takes may be held. After fork() the child's call does nothing.
  template <class Call>
  void run_sync(Call&& call);
  // Waits until the engine releases it. Not in a fork's child. Thread: any but the engine's.
  void wait_for(std::binary_semaphore& released);

  // All below: thread engine.

  // For unauthenticated peers a share of the process's descriptors. All are on the first
  // engine, where connections are made.
  static uint32_t most_unauthenticated();
  void adopt(OrphanedSocket& orphan, Standing standing = Standing::kPeer);
  void release(OrphanedSocket& orphan);  // once per adopt()

  void arm(Timer& timer, core::Nanoseconds from_now);
  void disarm(Timer& timer);
  core::Nanoseconds now() const;  // cached once per loop turn

  void watch(Watch& watch, core::Nanoseconds from_now);
  void unwatch(Watch& watch);
  // Moves the deadline, also forward. At most one system call. Thread: any; no effect on a watch
  // that is not watched.
  void put_off(Watch& watch, core::Nanoseconds from_now);

  // Operations. At most one that receives and one that waits to write may be in flight per
  // descriptor, which is non-blocking.

  static constexpr size_t kReceiveBuffer = 256 << 10;  // bytes
  // Receives once into a warm buffer of the engine; complete() gets the bytes, `most` at most (0:
  // what the buffer holds). result 0 = end of stream.
  void receive(Op& op, int fd, uint32_t most = 0);
  // Scratch memory for a caller that receives itself; valid until the caller returns to the engine.
  // It stays in the cache, as all use the same.
  std::span<uint8_t> scratch() const;
  static constexpr size_t kScratch = 128 << 10;  // bytes
  // From inside complete(): so many more bytes were received by the caller itself. For counters and
  // placement.
  void received_directly(uint64_t octets);
  // So many bytes were sent. For placement.
  void sent(uint64_t octets);
  void poll_readable(Op& op, int fd);  // once; counts as one that receives
  void poll_writable(Op& op, int fd);  // once
  void cancel(Op& op);                 // asks; the completion still comes
  // To be called when an operation will not be used to receive any more. Until then the kernel may
  // hold a reference of the socket, also when its descriptor is closed. The operation must not be
  // in flight. At most one system call.
  void let_go(Op& op);
  // Submits what was queued to the kernel now instead of at the end of this turn. After it the only
  // reference of a descriptor whose operations were all cancelled is its owner's, so that
  // closing it frees its address at once. False when the kernel did not take all that was queued:
  // then such a descriptor has to stay open until the operations have ended. One system call.
  bool flush();

  // What happened since the start: sleeps ended, receives and their bytes, and how often the
  // thread was moved to the CPU of its packets or away from it (engine/placement.h).
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
  post_and_wait(task);  // returns only after run() has ended and the engine dropped the task
}

// The engines of this process. The first one, which this points to, makes connections, and serves
// what has no affinity to another one; it is started by the first user. All are stopped and
// joined when the last reference goes, the first one before the others, which it may have to hand
// a stream to (transport/tcp_stream.h). Thread: any but an engine's. After fork() the child has
// engines of its own.
class EngineRef {
 public:
  static core::Result<EngineRef> acquire();
  // Engine `index`, below core::Settings::kMostEngines; 0 is the first one. Started when it is
  // asked for first, with the errno values of Engine::start(), and stays until the last reference
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
