// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// MPA Request and Reply frames: RFC 5044 section 7.1.1, RFC 6581 section 6 and 9.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/bytes.h"

namespace uiw::mpa {

// RFC 5044 7.1.1: the first 16 octets say which of the two frames it is; flags, revision and length
// are behind them.
inline constexpr uint32_t kStartupKeySize = 16;
inline constexpr uint32_t kStartupHeaderSize = 20;
inline constexpr uint8_t kMarkersFlag = 0x80;      // M
inline constexpr uint8_t kEnhancedFlag = 0x10;     // S, RFC 6581 6
inline constexpr uint32_t kMaxPrivateData = 512;   // RFC 5044 7.1.1, enhanced block included
inline constexpr uint32_t kEnhancedBlockSize = 4;  // RFC 6581 section 9
inline constexpr uint32_t kMaxStartupFrame = kStartupHeaderSize + kMaxPrivateData;
inline constexpr uint16_t kNoNegotiation = 0x3fff;  // IRD/ORD value: RFC 6581 9.1

enum class FrameKind { kRequest, kReply };

// The 4 octets that precede the ULP's private data when S=1.
struct Enhanced {
  bool peer_to_peer = false;  // A
  bool rtr_send = false;      // B: zero-length Send may be the RTR
  bool rtr_write = false;     // C
  bool rtr_read = false;      // D
  uint16_t ird = 0;           // 14 bits
  uint16_t ord = 0;           // 14 bits
};

struct StartupFrame {
  FrameKind kind = FrameKind::kRequest;
  bool markers = false;  // M
  bool crc = false;      // C
  bool reject = false;   // R (Reply only)
  uint8_t revision = 2;
  std::optional<Enhanced> enhanced;  // S=1
  uint16_t private_size = 0;         // the ULP's, without the enhanced block
  uint8_t private_data[kMaxPrivateData] = {};
};

// What a frame is but for the ULP's private data: header and enhanced block, zeros where it has
// none.
using StartupHead = std::array<uint8_t, kStartupHeaderSize + kEnhancedBlockSize>;
StartupHead head_of(const StartupFrame& frame);

// Writes the frame (kMaxStartupFrame octets must be there); returns its size.
// private_size must be at most 512, 508 with an enhanced block.
uint32_t encode(uint8_t* out, const StartupFrame& frame);

enum class ParseStatus {
  kNeedMore,     // a correct beginning; feed more octets
  kComplete,     // `out` and `consumed` are set
  kBadKey,       // RFC 5044 7.1.1: key differs (reported as soon as one octet does)
  kBadRevision,  // not 1 or 2
  kBadLength,    // PD_Length > 512, or S=1 with PD_Length < 4 (RFC 6581 6)
};

// Looks at the octets received so far. Never reads beyond them; may be called again with more.
ParseStatus parse(core::Bytes octets, FrameKind expected, StartupFrame& out, uint32_t& consumed);
const char* describe(ParseStatus status);

}  // namespace uiw::mpa
