// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One direction of a stream with MPA markers, octet by octet as RFC 5044 section 4.3 words it.
// Shares no code with the product: the reference to compare with.
#pragma once

#include <gtest/gtest.h>

#include "support/vectors.h"

namespace uiw::test {

class MarkedStream {
 public:
  // The first octet of full operation is at 0.
  explicit MarkedStream(uint64_t position = 0) : position_(position) {}

  // The octets of the next FPDU; `pointer_error` is added to each of its FPDUPTRs.
  Octets next(std::span<const uint8_t> ulpdu, bool crc = true, uint16_t pointer_error = 0) {
    Octets plain = fpdu(ulpdu, false);
    plain.erase(plain.end() - 4, plain.end());  // gcc 12 warns of resize() under a sanitizer
    Octets out;
    uint64_t length_at = 0;
    for (size_t i = 0; i <= plain.size(); ++i) {
      if (position_ % 512 == 0) {
        append_be16(out, 0);
        append_be16(out,
                    static_cast<uint16_t>((i == 0 ? 0 : position_ - length_at) + pointer_error));
        position_ += 4;
      }
      if (i == 0) length_at = position_;
      if (i == plain.size()) break;  // a marker between pad and CRC is covered by the CRC
      out.push_back(plain[i]);
      ++position_;
    }
    const uint32_t sum = crc ? reference_crc32c(out) : 0;
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(sum >> shift));
    position_ += 4;
    return out;
  }
  uint64_t position() const { return position_; }

 private:
  uint64_t position_;
};

// Cuts a stream with markers that begins at `position` into ULPDUs; says what is wrong with it.
inline std::vector<Octets> marked_ulpdus_of(std::span<const uint8_t> stream, bool crc = true,
                                            uint64_t position = 0) {
  std::vector<Octets> out;
  MarkedStream reference(position);
  while (!stream.empty()) {
    const size_t length_at = reference.position() % 512 == 0 ? 4 : 0;
    if (stream.size() < length_at + 2) break;
    const size_t length = static_cast<size_t>(stream[length_at]) << 8 | stream[length_at + 1];
    // The ULPDU without its markers, then what a right FPDU with it looks like.
    Octets ulpdu;
    for (size_t at = length_at + 2; ulpdu.size() < length && at < stream.size(); ++at) {
      if ((reference.position() + at) % 512 < 4) continue;
      ulpdu.push_back(stream[at]);
    }
    if (ulpdu.size() < length) break;
    const Octets right = reference.next(ulpdu, crc);
    if (stream.size() < right.size()) break;
    EXPECT_EQ(to_hex(stream.first(right.size())), to_hex(right));
    out.push_back(ulpdu);
    stream = stream.subspan(right.size());
  }
  EXPECT_EQ(stream.size(), 0u) << "octets of an incomplete FPDU at the end";
  return out;
}

}  // namespace uiw::test
