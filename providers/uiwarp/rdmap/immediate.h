// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Immediate Data: 8 octets behind the DDP header (RFC 7306 section 6.2), of which verbs use 4.
#pragma once

#include <cstdint>
#include <cstring>

namespace uiw::rdmap {

inline constexpr uint32_t kImmediateSize = 8;

// `data` is in network byte order, as ibv_send_wr and ibv_wc have it. The RFC does not say where in
// the 8 octets 4 belong: they go first, as Chelsio's adapters put them (conformance IM-10).
inline uint8_t* encode_immediate(uint8_t* p, uint32_t data) {
  std::memcpy(p, &data, sizeof data);
  std::memset(p + 4, 0, 4);
  return p + kImmediateSize;
}

// Whoever sees the 8 octets as one number has 4 of them last.
inline uint32_t decode_immediate(const uint8_t* p) {
  uint32_t first, last;
  std::memcpy(&first, p, sizeof first);
  std::memcpy(&last, p + 4, sizeof last);
  return first != 0 ? first : last;
}

}  // namespace uiw::rdmap
