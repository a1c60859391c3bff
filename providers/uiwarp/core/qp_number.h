// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What a queue pair number says: the upper 16 bits are a port of the process that has it, the lower
// 8 tell its queue pairs apart (doc/decisions/005).
#pragma once

#include <cstdint>

namespace uiw::core {

inline constexpr uint32_t kMostQpNumber = 0xffffff;
// As a destination: all that are attached to a multicast group (InfiniBand 9.6.1.3).
inline constexpr uint32_t kGroupQpNumber = kMostQpNumber;
// MPA does not tell the peer's queue pair number. In its place stands the number of the queue pair
// by which InfiniBand's connection manager itself speaks: no other has it (verbs/registry.cc), and
// none can be connected to it. As dest_qp_num in ibv_modify_qp it says that the stream comes from
// the rdma_cm_id, and that there is no peer to search for.
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
