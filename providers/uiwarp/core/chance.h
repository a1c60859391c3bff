// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Random choices of instruments. They are computed from a seed and the purpose, so that they do not
// depend on threads or time, and the same seed gives the same choices. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace uiw::core {

// SplitMix64's output function: each input bit changes half of the output bits.
constexpr uint64_t mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

// 64 bits for the purpose that `parts` name; their order matters.
constexpr uint64_t chance(uint64_t seed, std::initializer_list<uint64_t> parts) {
  uint64_t value = seed;
  for (const uint64_t part : parts) value = mixed(value ^ mixed(part));
  return value;
}

}  // namespace uiw::core
