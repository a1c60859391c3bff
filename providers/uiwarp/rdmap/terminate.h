// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The Terminate message: RFC 5040 section 4.8.
#pragma once

#include <cstdint>

#include "core/bytes.h"
#include "core/term_code.h"

namespace uiw::rdmap {

// Body after the DDP header: control word (4), then DDP Segment Length (2) if M,
// the terminated DDP header (14 or 18) if D, the terminated Read Request header (28) if R.
inline constexpr uint32_t kMaxTerminateBody = 4 + 2 + 18 + 28;

struct Terminate {
  core::TermCode code = core::TermCode::kLocalCatastrophic;
  bool has_length = false;          // M
  bool has_ddp_header = false;      // D; implies M
  bool has_read_header = false;     // R; implies D
  uint16_t ddp_segment_length = 0;  // whole ULPDU of the offending segment
  uint8_t ddp_header[18] = {};
  uint32_t ddp_header_size = 0;  // 14 or 18 when has_ddp_header
  uint8_t read_header[28] = {};
  bool siw_layout = false;  // decode only: the peer uses siw's bit order (x86 bit fields)
};

// Writes the body (kMaxTerminateBody octets must be there); returns its size.
uint32_t encode(uint8_t* body, const Terminate& t);

// Lenient: takes whatever is there. A body shorter than 4 octets or shorter than its flags promise
// yields what could be read, flags cleared for the rest; returns false in that case.
// RFC 5040 bit order, or siw's where only that makes sense: no RFC flag set, and siw's flags (octet
// 2 & 0x07) set or the code undefined in RFC order (conformance TE-18). 0x0200, which some RNICs
// send and no RFC defines, reads as kRemoteInvalidStag.
bool decode(core::Bytes body, Terminate& out);

}  // namespace uiw::rdmap
