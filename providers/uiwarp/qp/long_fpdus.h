// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// FPDUs that span several TCP segments, between two uiwarps. Pure. Thread: any.
//
// FPDUs SHOULD fit one TCP segment (RFC 5044 4.5, 5.1), which helps receivers that process segments
// as they arrive. A receiver that reads from a socket gains nothing from that, and every FPDU costs
// both ends. The two ends recognise each other by the capability hint (peer_hints.h).
// doc/decisions/012-long-fpdus.md
#pragma once

#include <algorithm>
#include <cstdint>

#include "mpa/framing.h"

namespace uiw::qp::long_fpdus {

// The bytes of as many whole segments of `emss` bytes as fit into `octets`, at least one. `emss` is
// not 0.
inline constexpr uint32_t whole_segments(uint32_t emss, uint32_t octets) {
  return emss * std::max<uint32_t>(1, octets / emss);
}

// The same for an FPDU whose ULPDU has `most` bytes: FPDUs of that size still begin where TCP
// segments do.
inline constexpr uint32_t several_segments(uint32_t emss, uint32_t most) {
  return emss == 0 ? 0 : whole_segments(emss, most + mpa::kLengthSize + mpa::kCrcSize);
}

}  // namespace uiw::qp::long_fpdus
