// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the engine needs of the kernel: start operations, sleep until one ends, be woken. The engine
// thread owns it; only wake() may be called from elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/clock.h"
#include "engine/engine.h"

namespace uiw::engine {

// What one dispatch() delivered, for counters and placement.
struct Delivered {
  uint32_t receives = 0;
  uint64_t octets = 0;
  int fd = -1;  // the last socket bytes came from
};

class Backend {
 public:
  // Of wait(); later and earlier than every time of core::now().
  static constexpr core::Nanoseconds kForever = INT64_MAX;
  static constexpr core::Nanoseconds kAtOnce = 0;

  // Thread: any, after close().
  virtual ~Backend() = default;

  // Operations as Engine describes them. An operation that cannot be started completes with
  // its error at the next dispatch().
  virtual void receive(Op& op, int fd, uint32_t most) = 0;
  virtual void poll_readable(Op& op, int fd) = 0;
  virtual void poll_writable(Op& op, int fd) = 0;
  virtual void cancel(Op& op) = 0;
  virtual void let_go(Op&) {}

  // Starts what was queued and sleeps until something completed, wake() was called or core::now()
  // is `until`. May return early.
  //
  // Backends leave a timer of the kernel as it is for as long as it is early enough, and sleep once
  // too often where it is too early: to set one before and cancel it after each sleep makes the
  // processor's timer be programmed twice, which a virtual machine pays for with 12 us.
  virtual void wait(core::Nanoseconds until) = 0;
  // Delivers everything that has completed.
  virtual Delivered dispatch() = 0;
  // Starts what was queued and lets the kernel act on it; delivers nothing. False when some of it
  // is still queued.
  virtual bool flush() = 0;
  // Ends the current or the next wait(). Thread: any.
  virtual void wake() = 0;
  // Lets go of everything in the kernel; in_flight() must be 0. Only wake() may be called after it.
  virtual void close() = 0;
  virtual const char* name() const = 0;

  uint32_t in_flight() const { return in_flight_; }
  // Operations in flight that were not cancelled.
  uint32_t not_cancelled() const { return in_flight_ - cancelling_; }

 protected:
  // Book-keeping every backend does alike; the only writers of Op's state.
  using Kind = Op::Kind;
  void begin(Op& op, Kind kind, int fd);
  bool mark_cancelling(Op& op);  // false when it is not in flight or was cancelled before
  void complete(Op& op, int result, core::Bytes data);

  static int fd_of(const Op& op) { return op.fd_; }
  static Kind kind_of(const Op& op) { return op.kind_; }
  // Remembers that `op` ends with `result`; complete_ended() delivers it.
  void end_later(Op& op, int result);
  bool any_ended() const { return first_ended_ != nullptr; }
  void complete_ended();

  static void set_most(Op& op, uint32_t most) { op.most_ = most; }
  static uint32_t most_of(const Op& op) { return op.most_; }
  static void set_drained(Op& op, bool drained) { op.drained_ = drained; }
  static bool drained(const Op& op) { return op.drained_; }
  static uint8_t& receives_of(Op& op) { return op.receives_; }
  static int16_t& fixed_of(Op& op) { return op.fixed_; }
  static bool cancelling(const Op& op) { return op.cancelling_; }

 private:
  uint32_t in_flight_ = 0;
  uint32_t cancelling_ = 0;
  Op* first_ended_ = nullptr;
  Op* last_ended_ = nullptr;
};

}  // namespace uiw::engine
