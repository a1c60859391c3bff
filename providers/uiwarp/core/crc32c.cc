// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// There are three implementations. For short inputs, where a call into ISA-L costs more than the
// work itself: the CPU's crc32 instruction. For long ones, if the CPU has AVX-512: that instruction
// side by side with multiplication. For the rest: ISA-L's folded multiplication, or its portable
// table code, depending on the CPU.
#include "core/crc32c.h"

#include "core/crc32c_fold.h"
#include "core/crc32c_side_by_side.h"

#include <isa-l/crc.h>

#include <atomic>
#include <climits>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uiw::core {
namespace {

// Below this many bytes the crc32 instruction alone is faster than ISA-L's set-up.
constexpr size_t kShortInput = 256;

uint32_t update_isal(uint32_t running, const void* data, size_t size) {
  auto p = static_cast<const uint8_t*>(data);
  // crc32_iscsi() counts in int and does not write to its input, though its type says it might.
  while (size > 0) {
    size_t piece = size < INT_MAX ? size : INT_MAX;
    running = crc32_iscsi(const_cast<uint8_t*>(p), static_cast<int>(piece), running);
    p += piece;
    size -= piece;
  }
  return running;
}

#if defined(__x86_64__)

// ISA-L's code for AVX-512 leaves the upper halves of the vector registers in use. Until they are
// cleared, every SSE instruction of this thread, in any part of the program, waits for them:
// building an FPDU of 1448 bytes took 270 ns instead of 90, a work request without CRC 260 instead
// of 105.
__attribute__((target("avx"))) uint32_t update_isal_avx(uint32_t running, const void* data,
                                                        size_t size) {
  running = update_isal(running, data, size);
  _mm256_zeroupper();
  return running;
}

template <uint32_t (*kLong)(uint32_t, const void*, size_t)>
__attribute__((target("sse4.2"))) uint32_t update_sse42(uint32_t running, const void* data,
                                                        size_t size) {
  if (size >= kShortInput) return kLong(running, data, size);
  auto p = static_cast<const uint8_t*>(data);
  uint64_t crc = running;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto crc32 = static_cast<uint32_t>(crc);
  if (size & 4) {
    uint32_t word;
    std::memcpy(&word, p, sizeof word);
    crc32 = _mm_crc32_u32(crc32, word);
    p += 4;
  }
  if (size & 2) {
    uint16_t word;
    std::memcpy(&word, p, sizeof word);
    crc32 = _mm_crc32_u16(crc32, word);
    p += 2;
  }
  if (size & 1) crc32 = _mm_crc32_u8(crc32, *p);
  return crc32;
}

uint32_t update_avx512(uint32_t running, const void* data, size_t size) {
  auto p = static_cast<const uint8_t*>(data);
  running = crc32c_side_by_side(running, p, size);
  return update_sse42<update_isal_avx>(running, p, size);
}

using Update = uint32_t (*)(uint32_t, const void*, size_t);

uint32_t choose_and_update(uint32_t running, const void* data, size_t size);

// Replaced by the first call. Relaxed is enough: any thread may see either value, both are right.
constinit std::atomic<Update> update_function{choose_and_update};

uint32_t choose_and_update(uint32_t running, const void* data, size_t size) {
  Update best = update_isal;
  if (crc32c_fold::supported()) {
    best = update_avx512;
  } else if (__builtin_cpu_supports("avx")) {
    best = update_sse42<update_isal_avx>;
  } else if (__builtin_cpu_supports("sse4.2")) {
    best = update_sse42<update_isal>;
  }
  update_function.store(best, std::memory_order_relaxed);
  return best(running, data, size);
}

#endif

}  // namespace

uint32_t crc32c_update(uint32_t running, const void* data, size_t size) {
#if defined(__x86_64__)
  return update_function.load(std::memory_order_relaxed)(running, data, size);
#else
  return update_isal(running, data, size);
#endif
}

}  // namespace uiw::core
