// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/siphash.h"

#include <gtest/gtest.h>

namespace uiw::core {
namespace {

// The reference implementation's vectors for 0, 8 and 16 octets, 00 to 0f, under the key 00 to 0f.
TEST(SipHash, IsTheReferences) {
  EXPECT_EQ(siphash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, 0x0706050403020100),
            0x93f5f5799a932462u);
  constexpr uint64_t kOctets[] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  constexpr SipKey kKey{kOctets[0], kOctets[1]};
  EXPECT_EQ(siphash(kKey, std::span<const uint64_t>()), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(siphash(kKey, kOctets), 0x3f2acc7f57c29bdbu);
}

TEST(SipHash, DependsOnEveryBitOfKeyAndNumber) {
  const SipKey key{1, 2};
  const uint64_t usual = siphash(key, 3);
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flip = uint64_t{1} << bit;
    EXPECT_NE(siphash({1 ^ flip, 2}, 3), usual);
    EXPECT_NE(siphash({1, 2 ^ flip}, 3), usual);
    EXPECT_NE(siphash(key, 3 ^ flip), usual);
  }
}

}  // namespace
}  // namespace uiw::core
