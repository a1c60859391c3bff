// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What is told of the round trips of a ping-pong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace uiw::bench {

constexpr int kWarmUp = 200;  // round trips before the clock starts

// `samples` in nanoseconds, at least one.
inline double median_us(std::vector<int64_t>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return static_cast<double>(*middle) / 1000.0;
}

}  // namespace uiw::bench
