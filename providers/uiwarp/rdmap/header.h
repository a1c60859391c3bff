// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// RDMAP control octet and headers behind the DDP header: RFC 5040 section 4, RFC 7306.
#pragma once

#include <cstdint>

#include "core/be.h"

namespace uiw::rdmap {

inline constexpr uint8_t kVersion = 1;  // RV; RFC 5040 4.1: 01 on revision 1 and later

// RFC 5040 fig. 4, RFC 7306 fig. 2.
enum class Opcode : uint8_t {
  kWrite = 0x0,
  kReadRequest = 0x1,
  kReadResponse = 0x2,
  kSend = 0x3,
  kSendInvalidate = 0x4,
  kSendSe = 0x5,
  kSendSeInvalidate = 0x6,
  kTerminate = 0x7,
  kImmediate = 0x8,
  kImmediateSe = 0x9,
  kAtomicRequest = 0xa,
  kAtomicResponse = 0xb,
};

inline constexpr uint8_t control(Opcode op) {
  return static_cast<uint8_t>(kVersion << 6 | static_cast<uint8_t>(op));
}
inline constexpr uint8_t version_of(uint8_t control_octet) {
  return control_octet >> 6;
}
inline constexpr Opcode opcode_of(uint8_t control_octet) {
  return static_cast<Opcode>(control_octet & 0xf);
}

// Read Request header, 28 octets: RFC 5040 section 4.4.
inline constexpr uint32_t kReadRequestSize = 28;
struct ReadRequest {
  uint32_t sink_stag;
  uint64_t sink_to;
  uint32_t size;
  uint32_t source_stag;
  uint64_t source_to;
};
inline ReadRequest decode_read_request(const uint8_t* p) {
  return {core::load_be32(p), core::load_be64(p + 4), core::load_be32(p + 12),
          core::load_be32(p + 16), core::load_be64(p + 20)};
}
inline uint8_t* encode(uint8_t* p, const ReadRequest& r) {
  core::store_be32(p, r.sink_stag);
  core::store_be64(p + 4, r.sink_to);
  core::store_be32(p + 12, r.size);
  core::store_be32(p + 16, r.source_stag);
  core::store_be64(p + 20, r.source_to);
  return p + kReadRequestSize;
}

}  // namespace uiw::rdmap
