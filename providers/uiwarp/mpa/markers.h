// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// MPA markers: RFC 5044 section 4.3. Four octets at every 512th octet of one direction of the
// stream, counted from its first octet of full operation, markers included. A position is such a
// count modulo 512, so no sequence number can wrap (conformance MF-24).
//
// A marker between two FPDUs belongs to the second one. So an FPDU on the wire is here what stands
// between the end of the one before it and its own CRC's end, a marker in front of its length
// included.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/be.h"
#include "core/bytes.h"
#include "mpa/framing.h"

namespace uiw::mpa {

inline constexpr uint32_t kMarkerSize = 4;
inline constexpr uint32_t kMarkerInterval = 512;
inline constexpr uint32_t kOctetsBetweenMarkers = kMarkerInterval - kMarkerSize;

// Octets that fit at `position` before the next marker; 0 where one is due.
inline constexpr uint32_t room_before_marker(uint32_t position) {
  return (kMarkerInterval - position % kMarkerInterval) % kMarkerInterval;
}
// Markers in an FPDU of `octets` (without them) that begins at `position`. One that would be due
// right behind its last octet is the next FPDU's.
inline constexpr uint32_t marker_count(uint32_t position, uint32_t octets) {
  const uint32_t before = room_before_marker(position);
  return octets > before ? 1 + (octets - before - 1) / kOctetsBetweenMarkers : 0;
}
inline constexpr uint32_t marked_size(uint32_t position, uint32_t octets) {
  return octets + kMarkerSize * marker_count(position, octets);
}
inline constexpr uint32_t kMaxMarkedFpdu = marked_size(0, kMaxFpdu);

// Lays one FPDU down with its markers.
class MarkerWriter {
 public:
  // `to` has room for the marked_size() of the FPDU, `position` is where it begins.
  MarkerWriter(uint8_t* to, uint32_t position)
      : start_(to),
        at_(to),
        position_(position % kMarkerInterval),
        length_(to + (position_ == 0 ? kMarkerSize : 0)) {}

  void put(const void* octets, uint32_t size) {
    const auto* from = static_cast<const uint8_t*>(octets);
    while (size > 0) {
      const uint32_t piece = std::min(size, room());
      std::memcpy(at_, from, piece);
      at_ += piece;
      from += piece;
      size -= piece;
    }
  }
  // The CRC covers a marker that lies right before it: to be called before written() is summed up.
  void before_crc() { static_cast<void>(room()); }
  core::Bytes written() const { return {start_, static_cast<size_t>(at_ - start_)}; }

 private:
  // Writes a marker where one is due; how much fits until the next one, at least one octet.
  uint32_t room() {
    const auto offset = static_cast<uint32_t>(at_ - start_);
    if ((position_ + offset) % kMarkerInterval != 0) return room_before_marker(position_ + offset);
    // RFC 5044 4.3: back to the first octet of ULPDU_Length; 0 when that follows.
    core::store_be16(at_, 0);
    core::store_be16(at_ + 2, at_ < length_ ? uint16_t{0} : static_cast<uint16_t>(at_ - length_));
    at_ += kMarkerSize;
    return kOctetsBetweenMarkers;
  }

  uint8_t* const start_;
  uint8_t* at_;
  const uint32_t position_;
  const uint8_t* const length_;
};

// extent() of an FPDU that begins at `position`.
inline Extent marked_extent(core::Bytes seen, uint32_t position) {
  // Everything is a multiple of four octets: a marker never splits the length.
  const uint32_t length_at = room_before_marker(position) == 0 ? kMarkerSize : 0;
  if (seen.size() < length_at + kLengthSize) return {length_at + kLengthSize, false};
  return {marked_size(position, fpdu_size(core::load_be16(seen.data() + length_at))), true};
}

// Moves a whole FPDU that begins at `position` to `to`, without its markers; `to` may be where it
// lies. False when one of them points elsewhere than to this FPDU's length (RFC 5044 8(3)).
inline bool strip_markers(core::Bytes fpdu, uint32_t position, uint8_t* to) {
  const uint32_t length_at = room_before_marker(position) == 0 ? kMarkerSize : 0;
  bool agree = true;
  for (uint32_t at = 0; at < fpdu.size();) {
    if ((position + at) % kMarkerInterval == 0) {
      // RFC 5044 4.2: the reserved half and the low two bits are not looked at.
      const uint32_t pointer = core::load_be16(fpdu.data() + at + 2) & 0xfffcu;
      agree = agree && pointer == (at < length_at ? 0 : (at - length_at) & 0xffffu);
      at += kMarkerSize;
      continue;
    }
    const auto piece = std::min<uint32_t>(room_before_marker(position + at),
                                          static_cast<uint32_t>(fpdu.size()) - at);
    std::memmove(to, fpdu.data() + at, piece);
    to += piece;
    at += piece;
  }
  return agree;
}

}  // namespace uiw::mpa
