// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The fuzz target's harness with inputs made from seeds: messages mostly as their hints say.
#include <gtest/gtest.h>

#include <random>

#include "fuzz/direct_placement_harness.h"

namespace uiw::test {
namespace {

std::vector<uint8_t> input(uint32_t seed) {
  std::mt19937 random(seed);
  const auto octet = [&] { return static_cast<uint8_t>(random()); };
  std::vector<uint8_t> out = {octet()};
  const unsigned kind = 1 + random() % 3;
  for (int messages = 0; messages < 3; ++messages) {
    const unsigned segments = 2 + random() % 4;
    // Hinted in segments of 8192 bytes or more, as many or one more or less.
    const auto size = static_cast<uint8_t>(4 + random() % 4);
    out.insert(out.end(), {0x80, static_cast<uint8_t>(0x40),
                           static_cast<uint8_t>((segments + random() % 3 - 1) << 4 | size)});
    for (unsigned i = 0; i < segments; ++i) {
      const bool other = random() % 8 == 0, last = i + 1 == segments;
      const auto what = static_cast<uint8_t>((other ? 1 + random() % 3 : kind) | 0x80 |
                                             (last ? 0x10 : 0) | (i > 0 ? 0x20 : 0));
      const auto how = static_cast<uint8_t>(random() % 8 ? 0x90 : octet());
      out.insert(out.end(), {what, how, static_cast<uint8_t>(random() % 60)});
    }
  }
  out.push_back(0);
  for (int pieces = 0; pieces < 30; ++pieces)
    out.push_back(static_cast<uint8_t>(octet() | (random() % 4 ? 8 : 0)));
  return out;
}

TEST(DirectPlacementRandom, NothingIsWrittenThatNobodyNamed) {
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<uint8_t> octets = input(seed);
    DirectPlacementHarness::run(octets.data(), octets.size());
  }
}

}  // namespace
}  // namespace uiw::test
