// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// SipHash-2-4 (Aumasson and Bernstein, 2012) of 64-bit numbers: without the key, its results cannot
// be distinguished from random numbers, no matter how many are known.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace uiw::core {

struct SipKey {
  uint64_t first = 0, second = 0;  // octets 0 to 7 and 8 to 15, little-endian
  bool operator==(const SipKey&) const = default;
};

// The hash of the numbers' bytes, each little-endian; at most 31 numbers.
inline uint64_t siphash(const SipKey& key, std::span<const uint64_t> numbers) {
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
  const auto compress = [&](uint64_t block) {
    v3 ^= block;
    rounds(2);
    v0 ^= block;
  };
  for (const uint64_t number : numbers) compress(number);
  compress(uint64_t{numbers.size_bytes()} << 56);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

inline uint64_t siphash(const SipKey& key, uint64_t number) {
  return siphash(key, std::span(&number, 1));
}

}  // namespace uiw::core
