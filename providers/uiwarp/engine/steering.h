// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Carries out Placement's decisions for the thread that it runs on. Needs no privilege; if a step
// fails, the thread stays where it is.
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
  // `follow` false: never changes the thread's CPUs.
  explicit Steering(bool follow);

  // Reports a turn of the engine that delivered bytes, the last of them from socket `fd`, and the
  // bytes that it sent since the last one. Returns what was done, for the counters.
  Placement::Action turn(uint64_t delivered, uint64_t sent, int fd);

  // Asks for short time slices (EEVDF, Linux 6.12), so that a woken engine need not wait until a
  // spinning application thread has used up its slice.
  static void shorten_slice();

 private:
  // Bytes that a connection has carried so far.
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
  // At the end of the last window, if it was measured.
  std::optional<core::RunTime> run_time_;
  int asked_ = -1;  // the socket that `carried_` belongs to
  Carried carried_;
};

}  // namespace uiw::engine
