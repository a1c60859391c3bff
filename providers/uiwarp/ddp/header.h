// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// DDP segment headers: RFC 5041 section 4. Layout facts of both, offsets from the first octet of
// the ULPDU. Octet 0 is DDP control, octet 1 belongs to the ULP (RDMAP control, RFC 5040 4.1).
#pragma once

#include <cstdint>

#include "core/be.h"

namespace uiw::ddp {

inline constexpr uint8_t kTaggedFlag = 0x80;   // T
inline constexpr uint8_t kLastFlag = 0x40;     // L
inline constexpr uint8_t kVersionMask = 0x03;  // DV
inline constexpr uint8_t kVersion = 1;         // RFC 5041 4.1: DV MUST be 1

inline constexpr uint32_t kTaggedHeaderSize = 14;
inline constexpr uint32_t kUntaggedHeaderSize = 18;

inline constexpr uint32_t kQnSend = 0, kQnRequest = 1, kQnTerminate = 2, kQnAtomicResponse = 3;

struct TaggedHeader {
  bool last;
  uint8_t ulp_control;  // RDMAP control octet
  uint32_t stag;
  uint64_t to;  // tagged offset of the first payload octet
};

struct UntaggedHeader {
  bool last;
  uint8_t ulp_control;
  uint32_t invalidate_stag;  // RsvdULP; RDMAP: only Send with Invalidate uses it
  uint32_t qn;
  uint32_t msn;
  uint32_t mo;  // offset of the first payload octet in the message
};

// RFC 5041 4.1. `octet0` is the first octet of a ULPDU.
inline bool is_tagged(uint8_t octet0) {
  return octet0 & kTaggedFlag;
}
inline bool is_last(uint8_t octet0) {
  return octet0 & kLastFlag;
}
inline uint8_t version_of(uint8_t octet0) {
  return octet0 & kVersionMask;
}

// Decoders read exactly kTaggedHeaderSize / kUntaggedHeaderSize octets, which the caller has
// checked to be there. Reserved bits are not looked at (RFC 5041 4.1).
inline TaggedHeader decode_tagged(const uint8_t* p) {
  return {(p[0] & kLastFlag) != 0, p[1], core::load_be32(p + 2), core::load_be64(p + 6)};
}
inline UntaggedHeader decode_untagged(const uint8_t* p) {
  return {(p[0] & kLastFlag) != 0, p[1],
          core::load_be32(p + 2),  core::load_be32(p + 6),
          core::load_be32(p + 10), core::load_be32(p + 14)};
}

// Encoders write exactly the header's size, reserved bits 0, and return the end.
inline uint8_t* encode(uint8_t* p, const TaggedHeader& h) {
  p[0] = static_cast<uint8_t>(kTaggedFlag | (h.last ? kLastFlag : 0) | kVersion);
  p[1] = h.ulp_control;
  core::store_be32(p + 2, h.stag);
  core::store_be64(p + 6, h.to);
  return p + kTaggedHeaderSize;
}
inline uint8_t* encode(uint8_t* p, const UntaggedHeader& h) {
  p[0] = static_cast<uint8_t>((h.last ? kLastFlag : 0) | kVersion);
  p[1] = h.ulp_control;
  core::store_be32(p + 2, h.invalidate_stag);
  core::store_be32(p + 6, h.qn);
  core::store_be32(p + 10, h.msn);
  core::store_be32(p + 14, h.mo);
  return p + kUntaggedHeaderSize;
}

// Makes of the header of a segment that of one which comes later in its message, `payload` octets
// further on. All else stays as it is, reserved bits too. RFC 5041 5.2.
inline void move_on(uint8_t* header, uint32_t payload, bool last) {
  if (last) header[0] |= kLastFlag;
  if (is_tagged(header[0])) {
    core::store_be64(header + 6, core::load_be64(header + 6) + payload);
  } else {
    core::store_be32(header + 14, core::load_be32(header + 14) + payload);
  }
}

}  // namespace uiw::ddp
