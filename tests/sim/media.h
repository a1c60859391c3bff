// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where each behaviour is tried. UIWARP_TEST_SIM_SEED=n runs the simulator with that seed only.
#pragma once

#include <cstdlib>

#include "sim/behaviour.h"

namespace uiw::test {

inline std::vector<Medium> simulated(uint32_t seeds) {
  uint32_t first = 1;
  if (const char* one = std::getenv("UIWARP_TEST_SIM_SEED")) {
    first = static_cast<uint32_t>(std::strtoul(one, nullptr, 10));
    seeds = 1;
  }
  std::vector<Medium> out;
  for (uint32_t seed = first; seed < first + seeds; ++seed)
    out.push_back({.crc = seed % 4 != 0,
                   .markers_to_first = seed % 3 == 0,
                   .markers_to_second = seed % 5 < 2,
                   .seed = seed,
                   .name = "seed" + std::to_string(seed)});
  return out;
}

inline const std::vector<Medium>& over_tcp() {
  static const std::vector<Medium> all = {
      {.tcp = true, .crc = true, .name = "crc"},
      {.tcp = true, .crc = false, .name = "plain"},
      {.tcp = true, .crc = true, .socket_buffer = 8192, .name = "narrow"},
      {.tcp = true, .crc = true, .elsewhere = true, .name = "elsewhere"},
      {.tcp = true,
       .crc = true,
       .markers_to_first = true,
       .markers_to_second = true,
       .name = "markers"}};
  return all;
}

#define UIWARP_EVERYWHERE(suite, seeds)                                     \
  INSTANTIATE_TEST_SUITE_P(Sim, suite, testing::ValuesIn(simulated(seeds)), \
                           [](const auto& the) { return the.param.name; }); \
  INSTANTIATE_TEST_SUITE_P(Tcp, suite, testing::ValuesIn(over_tcp()),       \
                           [](const auto& the) { return the.param.name; })

}  // namespace uiw::test
