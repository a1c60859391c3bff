// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Folding for CRC32C with AVX-512: 64 bytes are moved on by two multiplications (Gopal and others,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009).
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uiw::core::crc32c_fold {

// Whether this processor has the instructions for the functions below.
inline bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("vpclmulqdq");
}

// Polynomials modulo CRC32C's, bit-reflected: the most significant bit is the coefficient of x^0.
inline constexpr uint32_t kPolynomial = 0x82f63b78, kOne = 0x80000000, kX = 0x40000000;

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if (a & kOne) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? kPolynomial : 0);
  }
  return product;
}

constexpr uint32_t x_to_the(uint32_t exponent) {
  uint32_t power = kOne, square = kX;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) power = multiply(power, square);
    square = multiply(square, square);
  }
  return power;
}

// Factors that move 16 bytes on by `octets`: one for the first eight bytes, whose weight is x^64
// higher, and one for the others. A carry-less product of reflected operands is too high by x^33
// when one of them has 32 bits.
struct Move {
  explicit constexpr Move(uint32_t octets)
      : first(x_to_the(8 * octets + 64 - 33)), second(x_to_the(8 * octets - 33)) {}
  uint32_t first, second;
};

inline constexpr size_t kRegister = 64, kBlock = 4 * kRegister;
inline constexpr Move kByBlock(kBlock), kByRegister(kRegister), kBySixteen(16);

#define UIW_AVX512 __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))

UIW_AVX512 inline __m128i by(Move move) {
  return _mm_set_epi64x(move.second, move.first);
}

UIW_AVX512 inline __m512i each_by(Move move) {
  return _mm512_set4_epi64(move.second, move.first, move.second, move.first);
}

UIW_AVX512 inline __m512i fold(__m512i sum, __m512i move, __m512i next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, move, 0x00),
                                   _mm512_clmulepi64_epi128(sum, move, 0x11), next, kXorOfThree);
}

UIW_AVX512 inline __m128i fold(__m128i sum, __m128i move, __m128i next) {
  return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(sum, move, 0x00),
                                           _mm_clmulepi64_si128(sum, move, 0x11)));
}

// Adds the running value of the previous bytes to the first register.
UIW_AVX512 inline __m512i with_running(uint32_t running, __m512i first) {
  return _mm512_xor_si512(first,
                          _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(running))));
}

// Four sums, as a multiplication takes several cycles: one for each register of a block.
struct Sums {
  __m512i a, b, c, d;
};

// Moves the sums on by one block and adds `next`.
UIW_AVX512 inline void fold_block(Sums& sums, const Sums& next) {
  const __m512i a_block = each_by(kByBlock);
  sums.a = fold(sums.a, a_block, next.a);
  sums.b = fold(sums.b, a_block, next.b);
  sums.c = fold(sums.c, a_block, next.c);
  sums.d = fold(sums.d, a_block, next.d);
}

// The running value of everything that was folded into the sums.
UIW_AVX512 inline uint32_t running_of(const Sums& sums) {
  const __m512i a_register = each_by(kByRegister);
  const __m512i sum =
      fold(fold(fold(sums.a, a_register, sums.b), a_register, sums.c), a_register, sums.d);
  __m128i parts[4];
  std::memcpy(parts, &sum, sizeof parts);
  const __m128i a_part = by(kBySixteen);
  const __m128i last =
      fold(fold(fold(parts[0], a_part, parts[1]), a_part, parts[2]), a_part, parts[3]);
  // The CRC of the remaining 16 bytes is that of everything.
  const uint64_t half = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_extract_epi64(last, 0)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(half, static_cast<uint64_t>(_mm_extract_epi64(last, 1))));
}

}  // namespace uiw::core::crc32c_fold

#endif
