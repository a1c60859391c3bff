// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whether the engine thread belongs on the CPU where its packets are processed or on any other
// (doc/decisions/001-engine-io-uring.md). Pure: what was seen goes in, what to do comes out.
#pragma once

#include <cstdint>

#include "core/tuning.h"

namespace uiw::engine {

class Placement {
 public:
  // Two kinds of traffic decide, by the numbers in core/tuning.h. Latency traffic: nearly every
  // wake found the engine asleep and brought little. It follows. A stream: large pieces either way,
  // or middling ones that were there without waiting. It keeps away: on loopback the packets' CPU
  // is the other end's. Small pieces without waiting prove nothing: a ping-pong looks like that
  // when both ends share a CPU and the other end runs first. Between the two kinds nothing changes,
  // unless such a message is answered by another one: a ping-pong follows.

  enum class Action {
    kStay,
    kFollow,    // to `cpu`, nowhere else
    kKeepAway,  // anywhere but on `cpu`
  };
  struct Decision {
    Action action = Action::kStay;
    int cpu = -1;
  };

  // What the caller finds out about a window that is full.
  struct Window {
    // How often the thread slept.
    uint32_t sleeps = 0;
    // Where the socket that delivered last has its packets processed, and where the thread runs;
    // negative when unknown.
    int packets_cpu = -1;
    int own_cpu = -1;
    // If unclear(): whether that socket sends as it receives, whoever sends.
    bool ping_pong = false;
    // If together(): whether the thread wanted its CPU and others had it.
    bool waited = false;
  };

  // One turn of the engine that delivered bytes, and what it sent since the last one. True when a
  // window is full: judge() is due.
  bool turn(uint64_t delivered, uint64_t sent) {
    delivered_ += delivered;
    sent_ += sent;
    return ++turns_ >= core::tuning::kPlacementWindow;
  }

  // Whether a stream that waits for its sender and a ping-pong of large messages both look like
  // this.
  bool unclear(const Window& window) const;
  // Whether it is a stream whose packets come to the thread's own CPU: its sender may be there,
  // too.
  bool together(const Window& window) const;

  Decision judge(const Window& window);

  // Where the thread was placed; kStay: nowhere, it runs as it was started.
  const Decision& place() const { return place_; }
  // The caller could not carry out kFollow; the thread will not be sent there again.
  void follow_failed(int cpu);

 private:
  enum class Kind { kLatency, kStream, kBetween };
  Kind kind(const Window& window) const;

  Decision want(Decision wanted);

  uint32_t turns_ = 0;
  uint64_t delivered_ = 0, sent_ = 0;  // bytes
  Decision place_;
  Decision candidate_;     // what the last windows asked for
  int refused_ = -1;       // a CPU that we may not use
  uint32_t agreeing_ = 0;  // windows in a row for candidate_
  uint32_t rest_ = 0;      // windows for which nothing changes
  uint32_t here_ = 0;      // windows of a stream in a row that came to our own CPU
};

inline bool operator==(const Placement::Decision& a, const Placement::Decision& b) {
  return a.action == b.action && a.cpu == b.cpu;
}

}  // namespace uiw::engine
