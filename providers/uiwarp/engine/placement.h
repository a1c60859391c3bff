// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Decides whether the engine thread should run on the CPU where its packets are processed, or on
// any other (doc/decisions/001-engine-io-uring.md). Pure: observations go in, decisions come out.
#pragma once

#include <cstdint>

#include "core/tuning.h"

namespace uiw::engine {

class Placement {
 public:
  // Two kinds of traffic decide, by the numbers in core/tuning.h. Latency traffic: nearly every
  // wake found the engine asleep and brought little. Then the thread follows its packets. A stream:
  // large pieces, or medium ones that arrived without the engine having to sleep. Then the thread
  // keeps away: on loopback the packets' CPU is the other end's. Small pieces without sleeps prove
  // nothing: a ping-pong looks like that when both ends share a CPU and the other end runs first.
  // Traffic between the two kinds changes nothing, except a ping-pong of larger messages: then the
  // thread follows.

  enum class Action {
    kStay,
    kFollow,    // run on `cpu` only
    kKeepAway,  // run anywhere but on `cpu`
  };
  struct Decision {
    Action action = Action::kStay;
    int cpu = -1;
  };

  // What the caller measures when a window is full.
  struct Window {
    // How often the thread has slept.
    uint32_t sleeps = 0;
    // The CPU that processes the packets of the socket that delivered last, and the thread's CPU;
    // negative when unknown.
    int packets_cpu = -1;
    int own_cpu = -1;
    // If unclear(): whether that socket sends about as much as it receives, from any thread.
    bool ping_pong = false;
    // If together(): whether the thread was runnable while others had its CPU.
    bool waited = false;
  };

  // Reports a turn of the engine that delivered bytes, and the bytes that it sent since the last
  // one. True when a window is full: call judge().
  bool turn(uint64_t delivered, uint64_t sent) {
    delivered_ += delivered;
    sent_ += sent;
    return ++turns_ >= core::tuning::kPlacementWindow;
  }

  // True: this may be a stream that waits for its sender, or a ping-pong of large messages.
  bool unclear(const Window& window) const;
  // True: this is a stream whose packets are processed on the thread's own CPU. Its sender may be
  // there, too.
  bool together(const Window& window) const;

  Decision judge(const Window& window);

  // Where the thread was placed; kStay: it was not placed.
  const Decision& place() const { return place_; }
  // The caller could not carry out kFollow; this CPU is not proposed again.
  void follow_failed(int cpu);

 private:
  enum class Kind { kLatency, kStream, kBetween };
  Kind kind(const Window& window) const;

  Decision want(Decision wanted);

  uint32_t turns_ = 0;
  uint64_t delivered_ = 0, sent_ = 0;  // bytes
  Decision place_;
  Decision candidate_;     // what the last windows have proposed
  int refused_ = -1;       // a CPU that we may not use
  uint32_t agreeing_ = 0;  // consecutive windows that proposed candidate_
  uint32_t rest_ = 0;      // windows for which the placement is kept
  uint32_t here_ = 0;      // consecutive windows of a stream with packets on our own CPU
};

inline bool operator==(const Placement::Decision& a, const Placement::Decision& b) {
  return a.action == b.action && a.cpu == b.cpu;
}

}  // namespace uiw::engine
