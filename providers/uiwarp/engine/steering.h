// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Carries out what Placement decides, for the thread that it lives on. Needs no privilege; whatever
// fails leaves the thread where it is.
#pragma once

#include <cstdint>
#include <optional>

#include "core/cpu_mask.h"
#include "core/processors.h"
#include "engine/placement.h"

namespace uiw::engine {

// Thread: engine, from construction on.
class Steering {
 public:
  // follow false: never touches the thread's CPUs.
  explicit Steering(bool follow);

  // One turn of the engine that delivered bytes, the last of them from socket `fd`, and what it
  // sent since the last one. What was done, for the counters.
  Placement::Action turn(uint64_t delivered, uint64_t sent, int fd);

  // Asks for short time slices (EEVDF, Linux 6.12), so that a woken engine need not wait for a
  // spinning application thread to use up its own.
  static void shorten_slice();

 private:
  // What a connection has carried so far, in bytes.
  struct Carried {
    uint64_t received = 0, acknowledged = 0;
  };

  static uint64_t sleeps_so_far();

  bool is_ping_pong(int fd);
  bool had_to_wait();
  bool learn_limits();
  bool follow(int cpu);
  void keep_away(int cpu);

  Placement placement_;
  bool follow_ = false;
  core::CpuMask original_;  // where the thread may run
  core::CpuMask ours_;      // what we set
  uint64_t sleeps_ = 0;
  // At the end of the last window, if it was asked for.
  std::optional<core::RunTime> run_time_;
  int asked_ = -1;  // the socket that `carried_` is of
  Carried carried_;
};

}  // namespace uiw::engine
