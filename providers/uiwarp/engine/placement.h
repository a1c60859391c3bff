// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whether the engine thread belongs on the CPU where its packets are processed or on any other
// (doc/decisions/001-engine-io-uring.md). Pure: what was seen goes in, what to do comes out.
#pragma once

#include <cstdint>

namespace uiw::engine {

class Placement {
 public:
  // What a window of kWindow wakes is judged by.
  static constexpr uint32_t kWindow = 16;
  // Latency traffic: nearly every wake found the engine asleep and brought little. It follows.
  static constexpr uint32_t kLatencyOctets = 16 << 10;  // per wake, average of a window
  static constexpr uint32_t kLatencySleeps = 12;        // of kWindow
  // A stream: large pieces either way, or middling ones that were there without waiting. It keeps
  // away: on loopback the packets' CPU is the other end's. Small pieces without waiting are no
  // proof: a ping-pong looks like that when both ends share a CPU and the other end runs first.
  static constexpr uint32_t kStreamOctets = 128 << 10;
  static constexpr uint32_t kStreamSleeps = 4;
  // Between the two kinds nothing changes, unless such a message is answered by another one: a
  // ping-pong follows.

  // Windows in a row that must agree before the thread is placed anew, and for how many it then
  // stays: the scheduler moves the other end, too.
  static constexpr uint32_t kAgreeing = 2;
  static constexpr uint32_t kRest = 32;

  enum class Action {
    kStay,
    kFollow,    // to `cpu`, nowhere else
    kKeepAway,  // anywhere but on `cpu`
  };
  struct Decision {
    Action action = Action::kStay;
    int cpu = -1;
  };

  // One turn of the engine that delivered octets, and what it sent since the last one. True when a
  // window is full: then the caller finds out how often the thread slept in it and where the
  // packets arrive, if unclear() also whether it is a ping-pong, and calls judge().
  bool turn(uint64_t delivered, uint64_t sent) {
    delivered_ += delivered;
    sent_ += sent;
    return ++turns_ >= kWindow;
  }

  // Whether a stream that waits for its sender and a ping-pong of large messages both look like
  // this.
  bool unclear(uint32_t sleeps) const;

  // sleeps: how often the thread slept during the window. incoming_cpu: where the socket that
  // delivered last has its packets processed, negative when unknown. ping_pong: whether that socket
  // sends as it receives, whoever sends.
  Decision judge(uint32_t sleeps, int incoming_cpu, bool ping_pong = false);

  // Where the thread was placed; kStay: nowhere, it runs as it was started.
  const Decision& place() const { return place_; }
  // The caller could not carry out kFollow; the thread will not be sent there again.
  void follow_failed(int cpu);

 private:
  enum class Kind { kLatency, kStream, kBetween };
  Kind kind(uint32_t sleeps, bool ping_pong) const;

  Decision want(Decision wanted);

  uint32_t turns_ = 0;
  uint64_t delivered_ = 0, sent_ = 0;  // octets
  Decision place_;
  Decision candidate_;     // what the last windows asked for
  int refused_ = -1;       // a CPU that we may not use
  uint32_t agreeing_ = 0;  // windows in a row for candidate_
  uint32_t rest_ = 0;      // windows for which nothing changes
};

inline bool operator==(const Placement::Decision& a, const Placement::Decision& b) {
  return a.action == b.action && a.cpu == b.cpu;
}

}  // namespace uiw::engine
