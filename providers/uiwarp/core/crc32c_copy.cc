// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copies and computes in one pass, which ISA-L does not offer for this polynomial: the bytes loaded
// for the copy are folded from the same registers. CPUs without the instructions do one after the
// other.
#include "core/copy.h"
#include "core/crc32c.h"
#include "core/crc32c_fold.h"

namespace uiw::core {
namespace {

#if defined(__x86_64__)

using namespace crc32c_fold;

UIW_AVX512 inline __m512i load_and_store(uint8_t* to, const uint8_t* from) {
  __m512i octets = _mm512_loadu_si512(from);
  // Other threads may write to `from`, so the compiler must not load it twice, to store and to fold
  // it.
  asm("" : "+v"(octets));
  _mm512_storeu_si512(to, octets);
  return octets;
}

UIW_AVX512 inline Sums load_and_store_block(uint8_t* to, const uint8_t* from) {
  return {load_and_store(to, from), load_and_store(to + kRegister, from + kRegister),
          load_and_store(to + 2 * kRegister, from + 2 * kRegister),
          load_and_store(to + 3 * kRegister, from + 3 * kRegister)};
}

// `size`: a multiple of the block size, at least one block.
UIW_AVX512 uint32_t copy_blocks(uint32_t running, uint8_t* to, const uint8_t* from, size_t size) {
  Sums sums = load_and_store_block(to, from);
  sums.a = with_running(running, sums.a);
  for (const uint8_t* const end = from + size; (from += kBlock) < end;)
    fold_block(sums, load_and_store_block(to += kBlock, from));
  return running_of(sums);
}

const bool g_can_fold = crc32c_fold::supported();

#endif

}  // namespace

uint32_t crc32c_copy_first(uint32_t running, void* to, const void* from, size_t size) {
  copy(to, from, size);
  return crc32c_update(running, to, size);
}

uint32_t crc32c_copy(uint32_t running, void* to, const void* from, size_t size) {
#if defined(__x86_64__)
  if (const size_t blocks = size - size % kBlock; blocks > 0 && g_can_fold) {
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
