// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// When the engine thread follows its packets and when it lets go
// (doc/decisions/001-engine-io-uring.md). Pure: what was seen goes in, what to do comes out.
#pragma once

#include <cstdint>

namespace uiw::engine {

class Placement {
 public:
  // What a window of kWindow wakes is judged by.
  static constexpr uint32_t kWindow = 16;
  // Latency traffic: nearly every wake found the engine asleep and brought little.
  static constexpr uint32_t kLatencyOctets = 16 << 10;  // per wake, average of a window
  static constexpr uint32_t kLatencySleeps = 12;        // of kWindow
  // A stream: large pieces, or middling ones that were there without waiting. Small pieces without
  // waiting are no proof: a ping-pong looks like that when both ends share a CPU and the other end
  // runs first.
  static constexpr uint32_t kStreamOctets = 128 << 10;
  static constexpr uint32_t kStreamSleeps = 4;
  // Between the two kinds nothing changes.

  // Windows in a row that must agree before the thread is moved to another CPU, or let go.
  static constexpr uint32_t kAgreeing = 2;

  enum class Action { kStay, kMove, kRelease };
  struct Decision {
    Action action = Action::kStay;
    int cpu = -1;  // kMove only
  };

  // One turn of the engine that delivered octets. True when a window is full: then the caller
  // finds out how often the thread slept in it and where the packets arrive, and calls judge().
  bool turn(uint64_t octets) {
    octets_ += octets;
    return ++turns_ >= kWindow;
  }

  // sleeps: how often the thread slept during the window. incoming_cpu: where the socket that
  // delivered last has its packets processed, negative when unknown; only used when the traffic
  // is of the latency kind, see wants_cpu().
  Decision judge(uint32_t sleeps, int incoming_cpu);

  // Whether judge(sleeps, ...) will look at incoming_cpu, which costs a system call to learn.
  bool wants_cpu(uint32_t sleeps) const { return kind(sleeps) == Kind::kLatency; }

  // The CPU the thread was moved to, -1 while it runs free.
  int cpu() const { return cpu_; }
  // The caller could not carry out kMove; the thread runs free and will not be sent there again.
  void move_failed(int cpu);

 private:
  enum class Kind { kLatency, kStream, kBetween };
  Kind kind(uint32_t sleeps) const;

  uint32_t turns_ = 0;
  uint64_t octets_ = 0;
  int cpu_ = -1;
  int candidate_ = -1;      // the CPU the last windows asked for
  int refused_ = -1;        // a CPU that we may not use
  uint32_t agreeing_ = 0;   // windows in a row for candidate_
  uint32_t streaming_ = 0;  // windows in a row that were streams
};

}  // namespace uiw::engine
