// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// SipHash-2-4 (Aumasson and Bernstein, 2012) of one 64-bit number: who does not know the key cannot
// tell the results for 0, 1, 2, ... from random numbers, however many of them are shown.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>

namespace uiw::core {

struct SipKey {
  uint64_t first = 0, second = 0;  // octets 0 to 7 and 8 to 15, little-endian
};

inline uint64_t siphash(const SipKey& key, uint64_t number) {
  uint64_t v0 = key.first ^ 0x736f6d6570736575, v1 = key.second ^ 0x646f72616e646f6d;
  uint64_t v2 = key.first ^ 0x6c7967656e657261, v3 = key.second ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    while (count-- > 0) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  for (const uint64_t block : {number, uint64_t{sizeof number} << 56}) {
    v3 ^= block;
    rounds(2);
    v0 ^= block;
  }
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace uiw::core
