// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// FPDUs of several TCP segments, between two uiwarps. Pure. Thread: any.
//
// That FPDUs SHOULD fit a TCP segment (RFC 5044 4.5, 5.1) serves receivers that take segments as
// they come. A receiver that reads from a socket gains nothing by it, and both ends pay for every
// FPDU. The two know of each other by the capability hint (peer_hints.h).
// doc/decisions/012-long-fpdus.md
#pragma once

#include <algorithm>
#include <cstdint>

#include "mpa/framing.h"

namespace uiw::qp::long_fpdus {

// As many whole segments of `emss` bytes, which are not none, as `octets` hold, at least one.
inline constexpr uint32_t whole_segments(uint32_t emss, uint32_t octets) {
  return emss * std::max<uint32_t>(1, octets / emss);
}

// As many of them as an ULPDU of `most` bytes leaves room for: FPDUs of that size still begin
// where segments do.
inline constexpr uint32_t several_segments(uint32_t emss, uint32_t most) {
  return emss == 0 ? 0 : whole_segments(emss, most + mpa::kLengthSize + mpa::kCrcSize);
}

}  // namespace uiw::qp::long_fpdus
