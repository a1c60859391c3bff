// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the segments of a message have to look like, by RFC 5041 5.2: every one but the last fills
// its ULPDU, L is on the last, TO or MO counts payload octets, and all else is the same in each of
// them.
#pragma once

#include <algorithm>

#include "support/vectors.h"

namespace uiw::test {

// The largest ULPDU: RFC 5044 4.5 with its limits, and what uiwarp allows itself with CRC.
inline size_t largest_ulpdu(uint32_t emss, bool crc) {
  return std::clamp<size_t>(emss - (6 + emss % 4), 128, crc ? 16384 : 64768);
}

// Calls `make(offset, payload, last)` for each segment; `mulpdu` and `header` in octets.
template <class Make>
std::vector<Octets> cut_message(std::span<const uint8_t> message, size_t mulpdu, size_t header,
                                Make&& make) {
  std::vector<Octets> out;
  size_t at = 0;
  do {
    const size_t size = std::min(mulpdu - header, message.size() - at);
    out.push_back(make(at, message.subspan(at, size), at + size == message.size()));
    at += size;
  } while (at < message.size());  // a message without data is one segment
  return out;
}

inline std::vector<Octets> tagged_segments(uint8_t opcode, uint32_t stag, uint64_t to,
                                           std::span<const uint8_t> message, size_t mulpdu) {
  return cut_message(message, mulpdu, 14,
                     [&](size_t at, std::span<const uint8_t> payload, bool last) {
                       return tagged(opcode, stag, to + at, payload, last);
                     });
}

inline std::vector<Octets> untagged_segments(uint8_t opcode, uint32_t msn,
                                             std::span<const uint8_t> message, size_t mulpdu) {
  return cut_message(message, mulpdu, 18,
                     [&](size_t at, std::span<const uint8_t> payload, bool last) {
                       return untagged(opcode, 0, msn, static_cast<uint32_t>(at), payload, last);
                     });
}

}  // namespace uiw::test
