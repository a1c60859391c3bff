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
    const auto takes = static_cast<core::Nanoseconds>(static_cast<double>(bytes) * 8e9 /
                                                      static_cast<double>(rate));
    free_at_ = std::max(free_at_, now) + takes;
    return free_at_;
  }

 private:
  core::Nanoseconds free_at_ = 0;
};

}  // namespace uiw::faults
