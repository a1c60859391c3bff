// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/siphash.h"

#include <gtest/gtest.h>

namespace uiw::core {
namespace {

// The reference implementation's vector for eight octets, 00 to 07, under the key 00 to 0f.
TEST(SipHash, IsTheReferences) {
  EXPECT_EQ(siphash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, 0x0706050403020100),
            0x93f5f5799a932462u);
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
