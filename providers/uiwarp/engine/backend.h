// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the engine needs from the kernel: start operations, sleep until one completes, be woken.
// Owned by the engine thread; other threads may call wake() only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/clock.h"
#include "engine/engine.h"

namespace uiw::engine {

// What one dispatch() has delivered, for counters and placement.
struct Delivered {
  uint32_t receives = 0;
  uint64_t octets = 0;
  int fd = -1;  // the socket that the last bytes came from
};

class Backend {
 public:
  // Arguments of wait(): later and earlier than any value of core::now().
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

  // Submits queued operations and sleeps until one completes, wake() is called or core::now()
  // reaches `until`. May return early.
  //
  // Backends do not change a kernel timer that is early enough, and accept one wake too many when
  // it is too early. Setting a timer before each sleep and cancelling it afterwards programs the
  // processor's timer twice, which costs 12 us in a virtual machine.
  virtual void wait(core::Nanoseconds until) = 0;
  // Delivers everything that has completed.
  virtual Delivered dispatch() = 0;
  // Submits queued operations and lets the kernel process them; delivers nothing. False when some
  // are still queued.
  virtual bool flush() = 0;
  // Ends the current or the next wait(). Thread: any.
  virtual void wake() = 0;
  // Ends every use of our memory by the kernel; in_flight() must be 0. Afterwards only wake() may
  // be called.
  virtual void close() = 0;
  virtual const char* name() const = 0;

  uint32_t in_flight() const { return in_flight_; }
  // Operations in flight that were not cancelled.
  uint32_t not_cancelled() const { return in_flight_ - cancelling_; }

 protected:
  // Book-keeping common to all backends, which alone writes Op's state.
  using Kind = Op::Kind;
  void begin(Op& op, Kind kind, int fd);
  bool mark_cancelling(Op& op);  // false when it is not in flight or was cancelled before
  void complete(Op& op, int result, core::Bytes data);

  static int fd_of(const Op& op) { return op.fd_; }
  static Kind kind_of(const Op& op) { return op.kind_; }
  // Notes that `op` has ended with `result`; complete_ended() delivers that.
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
