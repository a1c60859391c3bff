// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A way that takes so many bits a second. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.h"

namespace uiw::faults {

class Pace {
 public:
  // When the last of so many bytes, which are handed over `now`, has left: behind those before it,
  // at `rate` bits a second; 0: at once.
  core::Nanoseconds departure(core::Nanoseconds now, uint64_t bytes, uint64_t rate) {
    if (rate == 0) return now;
    free_at_ = std::max(free_at_, now) + takes(bytes, rate);
    return free_at_;
  }
  // So many of them are not to leave after all.
  void take_back(uint64_t bytes, uint64_t rate) {
    if (rate > 0) free_at_ -= takes(bytes, rate);
  }

 private:
  static core::Nanoseconds takes(uint64_t bytes, uint64_t rate) {
    return static_cast<core::Nanoseconds>(static_cast<double>(bytes) * 8e9 /
                                          static_cast<double>(rate));
  }

  core::Nanoseconds free_at_ = 0;
};

}  // namespace uiw::faults
