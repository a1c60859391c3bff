// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/rate.h"

#include "device/listing_order.h"

namespace uiw::device {

Rate rate_of(const State& state) {
  constexpr Rate kUsual{.width = 2, .speed = 32, .text = "100 Gb/sec (4X EDR)"};
  constexpr Rate kLoopback{.width = 2, .speed = 1, .text = "10 Gb/sec (4X SDR)"};
  return reach_of(state) == Reach::kLoopback ? kLoopback : kUsual;
}

}  // namespace uiw::device
