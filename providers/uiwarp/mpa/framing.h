// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// FPDU arithmetic: RFC 5044 section 4. An FPDU is ULPDU_Length(2) | ULPDU | PAD(0-3) | CRC(4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/be.h"
#include "core/bytes.h"
#include "core/crc32c.h"

namespace uiw::mpa {

inline constexpr uint32_t kLengthSize = 2;
inline constexpr uint32_t kCrcSize = 4;
inline constexpr uint32_t kMinMulpdu = 128;    // RFC 5044 4.5 / 3
inline constexpr uint32_t kMaxMulpdu = 64768;  // RFC 5044 3
inline constexpr uint32_t kMaxUlpdu = 65535;   // what the length field can say; accepted on receive

// RFC 5044 4.1: pad so that length, ULPDU and pad are a multiple of four octets.
inline constexpr uint32_t pad_size(uint32_t ulpdu_length) {
  return -(kLengthSize + ulpdu_length) & 3;
}
inline constexpr uint32_t fpdu_size(uint32_t ulpdu_length) {
  return kLengthSize + ulpdu_length + pad_size(ulpdu_length) + kCrcSize;
}
inline constexpr uint32_t kMaxFpdu = 65544;
static_assert(fpdu_size(kMaxUlpdu) <= kMaxFpdu);

// Writes what comes behind a ULPDU, up to seven octets, and returns how many: zero pad, then the
// CRC over all before it, least significant octet first; without one the field is zero (RFC
// 5044 4.1, 4.4). `running`: the CRC of length and ULPDU. There is room for eight octets, so that
// none of this is a call.
inline uint32_t write_trailer(uint8_t* at, uint32_t ulpdu_length, bool crc, uint32_t running) {
  const uint32_t pad = pad_size(ulpdu_length);
  std::memset(at, 0, 8);
  if (crc) {
    if (pad > 0) running = core::crc32c_update(running, at, pad);
    const uint32_t value = core::crc32c_end(running);
    std::memcpy(at + pad, &value, sizeof value);  // little-endian host: be.h
  }
  return pad + kCrcSize;
}

// How many octets of the FPDU that `seen` begins with have to be there: as many as say its length
// when they are not there yet (`whole` is false then), else all.
struct Extent {
  size_t size;
  bool whole;
};
inline Extent extent(core::Bytes seen) {
  if (seen.size() < kLengthSize) return {kLengthSize, false};
  return {fpdu_size(core::load_be16(seen.data())), true};
}

// RFC 5044 4.5: the largest ULPDU whose FPDU fits the effective MSS; 128..64768.
inline constexpr uint32_t mulpdu(uint32_t emss, bool markers) {
  int64_t room =
      static_cast<int64_t>(emss) - (6 + (markers ? 4 * ((emss + 511) / 512) : 0) + emss % 4);
  if (room < kMinMulpdu) return kMinMulpdu;
  if (room > kMaxMulpdu) return kMaxMulpdu;
  return static_cast<uint32_t>(room);
}

}  // namespace uiw::mpa
