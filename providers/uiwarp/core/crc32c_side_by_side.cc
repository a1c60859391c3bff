// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Multiplication and the crc32 instruction use different units of a processor, so each can process
// a part of the bytes at the same time. A crc32 instruction waits for the value of the one before.
// So there are three lanes of them, for consecutive parts of the input; the last part is folded.
#include "core/crc32c_side_by_side.h"

#include "core/crc32c_fold.h"

#if defined(__x86_64__)

namespace uiw::core {
namespace {

using namespace crc32c_fold;

// In a turn each lane processes four words and the sums one block: both take the same time.
constexpr size_t kLanes = 3, kWords = 4, kLaneTurn = kWords * sizeof(uint64_t);
constexpr size_t kTurn = kLanes * kLaneTurn + kBlock;
constexpr size_t kMostTurns = 64;
static_assert(kTurn <= kLeastSideBySide);

// Factors that move the value of each lane on by all bytes behind it, for each number of turns.
struct Moves {
  constexpr Moves() {
    for (uint32_t turns = 1; turns <= kMostTurns; turns++)
      for (uint32_t lane = 0; lane < kLanes; lane++)
        by[turns][lane] = Move(turns * kBlock + (kLanes - 1 - lane) * turns * kLaneTurn).second;
  }
  uint32_t by[kMostTurns + 1][kLanes] = {};
};
constexpr Moves kMoves;

UIW_AVX512 inline uint64_t with_word(uint64_t lane, const uint8_t* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return _mm_crc32_u64(lane, word);
}

// Unrolled by hand: from a loop the compiler makes a copy of the words and a loop.
UIW_AVX512 inline uint64_t with_words(uint64_t lane, const uint8_t* data) {
  static_assert(kWords == 4);
  return with_word(with_word(with_word(with_word(lane, data), data + 8), data + 16), data + 24);
}

UIW_AVX512 inline uint64_t moved(uint64_t lane, uint32_t move) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(lane)),
                                               _mm_cvtsi64_si128(move), 0x00);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(product));
}

UIW_AVX512 inline Sums load_block(const uint8_t* data) {
  return {_mm512_loadu_si512(data), _mm512_loadu_si512(data + kRegister),
          _mm512_loadu_si512(data + 2 * kRegister), _mm512_loadu_si512(data + 3 * kRegister)};
}

UIW_AVX512 uint32_t side_by_side(uint32_t running, const uint8_t* data, size_t turns) {
  const size_t lane_size = turns * kLaneTurn;
  uint64_t first = running, second = 0, third = 0;
  const uint8_t* block = data + kLanes * lane_size;
  Sums sums = load_block(block);
  for (size_t turn = 1;; turn++) {
    first = with_words(first, data);
    second = with_words(second, data + lane_size);
    third = with_words(third, data + 2 * lane_size);
    if (turn == turns) break;
    data += kLaneTurn;
    block += kBlock;
    fold_block(sums, load_block(block));
  }
  const auto& by = kMoves.by[turns];
  const uint64_t lanes = moved(first, by[0]) ^ moved(second, by[1]) ^ moved(third, by[2]);
  return running_of(sums) ^ static_cast<uint32_t>(_mm_crc32_u64(0, lanes));
}

}  // namespace

uint32_t crc32c_side_by_side(uint32_t running, const uint8_t*& data, size_t& size) {
  while (size >= kLeastSideBySide) {
    const size_t turns = size / kTurn < kMostTurns ? size / kTurn : kMostTurns;
    running = side_by_side(running, data, turns);
    data += turns * kTurn;
    size -= turns * kTurn;
  }
  return running;
}

}  // namespace uiw::core

#endif
