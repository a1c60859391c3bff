// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One clock for the records of several processes. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "trace/snapshot.h"

namespace uiw::trace {

class Timeline {
 public:
  // On one host the monotonic clock orders them, between hosts the realtime clocks do.
  explicit Timeline(std::span<const Snapshot> processes) {
    for (const Snapshot& process : processes)
      same_host_ = same_host_ && process.boot == processes[0].boot &&
                   (!process.boot.empty() || processes.size() == 1);
    if (!processes.empty()) first_ = clock_of(processes[0]);
  }

  // CLOCK_REALTIME, nanoseconds, of a time in a record of that process. Wrong numbers wrap around,
  // which is defined.
  int64_t real(const Snapshot& process, int64_t time) const {
    const Clock clock = same_host_ ? first_ : clock_of(process);
    return static_cast<int64_t>(static_cast<uint64_t>(time) - clock.monotonic + clock.realtime);
  }

 private:
  struct Clock {
    uint64_t monotonic = 0, realtime = 0;  // the same moment
  };
  static Clock clock_of(const Snapshot& process) {
    return {static_cast<uint64_t>(process.monotonic), static_cast<uint64_t>(process.realtime)};
  }

  bool same_host_ = true;
  Clock first_;
};

}  // namespace uiw::trace
