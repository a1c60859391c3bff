// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copying and computing in one pass, which ISA-L does not offer for this polynomial: what was
// loaded to be copied is folded from the same registers (Gopal and others, "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). Elsewhere one after the other.
#include "core/copy.h"
#include "core/crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uiw::core {
namespace {

#if defined(__x86_64__)

// Polynomials modulo CRC32C's, bit-reflected: the most significant bit is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78, kOne = 0x80000000, kX = 0x40000000;

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

// What moves 16 octets on by `octets`: for the first eight, whose weight is x^64 more, and for the
// others. A carry-less product of reflected operands is x^33 too high where one has 32 bits.
struct Move {
  explicit constexpr Move(uint32_t octets)
      : first(x_to_the(8 * octets + 64 - 33)), second(x_to_the(8 * octets - 33)) {}
  uint32_t first, second;
};

constexpr size_t kRegister = 64, kBlock = 4 * kRegister;
constexpr Move kByBlock(kBlock), kByRegister(kRegister), kBySixteen(16);

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

UIW_AVX512 inline __m512i load_and_store(uint8_t* to, const uint8_t* from) {
  const __m512i octets = _mm512_loadu_si512(from);
  _mm512_storeu_si512(to, octets);
  return octets;
}

// `size`: whole blocks, one at least. Four sums, as a multiplication takes several cycles.
UIW_AVX512 uint32_t copy_blocks(uint32_t running, uint8_t* to, const uint8_t* from, size_t size) {
  __m512i a = load_and_store(to, from);
  __m512i b = load_and_store(to + kRegister, from + kRegister);
  __m512i c = load_and_store(to + 2 * kRegister, from + 2 * kRegister);
  __m512i d = load_and_store(to + 3 * kRegister, from + 3 * kRegister);
  a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(running))));
  const __m512i a_block = each_by(kByBlock);
  for (const uint8_t* const end = from + size; (from += kBlock) < end;) {
    to += kBlock;
    a = fold(a, a_block, load_and_store(to, from));
    b = fold(b, a_block, load_and_store(to + kRegister, from + kRegister));
    c = fold(c, a_block, load_and_store(to + 2 * kRegister, from + 2 * kRegister));
    d = fold(d, a_block, load_and_store(to + 3 * kRegister, from + 3 * kRegister));
  }
  const __m512i a_register = each_by(kByRegister);
  const __m512i sum = fold(fold(fold(a, a_register, b), a_register, c), a_register, d);
  __m128i parts[4];
  std::memcpy(parts, &sum, sizeof parts);
  const __m128i a_part = by(kBySixteen);
  const __m128i last =
      fold(fold(fold(parts[0], a_part, parts[1]), a_part, parts[2]), a_part, parts[3]);
  // The value of the 16 octets that are left is that of everything.
  const uint64_t half = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_extract_epi64(last, 0)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(half, static_cast<uint64_t>(_mm_extract_epi64(last, 1))));
}

const bool g_has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("vpclmulqdq");

#endif

}  // namespace

uint32_t crc32c_copy_first(uint32_t running, void* to, const void* from, size_t size) {
  copy(to, from, size);
  return crc32c_update(running, to, size);
}

uint32_t crc32c_copy(uint32_t running, void* to, const void* from, size_t size) {
#if defined(__x86_64__)
  if (const size_t blocks = size - size % kBlock; blocks > 0 && g_has_avx512) {
    running =
        copy_blocks(running, static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), blocks);
    to = static_cast<uint8_t*>(to) + blocks;
    from = static_cast<const uint8_t*>(from) + blocks;
    size -= blocks;
  }
#endif
  return crc32c_copy_first(running, to, from, size);
}

}  // namespace uiw::core
