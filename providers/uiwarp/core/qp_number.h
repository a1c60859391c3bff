// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The structure of queue pair numbers: the upper 16 bits are a port of the process, the lower 8
// bits tell its queue pairs apart (doc/decisions/005).
#pragma once

#include <cstdint>

namespace uiw::core {

inline constexpr uint32_t kMostQpNumber = 0xffffff;
// As a destination: all queue pairs attached to a multicast group (InfiniBand 9.6.1.3).
inline constexpr uint32_t kGroupQpNumber = kMostQpNumber;
// MPA does not carry the peer's queue pair number. In its place we use the number of the queue pair
// that InfiniBand's connection manager itself uses. No other queue pair has it (verbs/registry.cc),
// and none can be connected to it. As dest_qp_num in ibv_modify_qp it says that the stream comes
// from the rdma_cm_id, and that there is no peer to search for.
inline constexpr uint32_t kCmQpNumber = 1;
inline constexpr uint32_t kNumbersPerPort = 256;

inline constexpr uint16_t port_of(uint32_t qp_num) {
  return static_cast<uint16_t>(qp_num >> 8);
}
inline constexpr uint8_t index_of(uint32_t qp_num) {
  return static_cast<uint8_t>(qp_num);
}
inline constexpr uint32_t number_of(uint16_t port, uint8_t index) {
  return uint32_t{port} << 8 | index;
}

}  // namespace uiw::core
