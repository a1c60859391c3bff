// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The 40 bytes in front of each datagram that a UD queue pair receives: the global routing header
// with which it came, as adapters write it and ibv_init_ah_from_wc() reads it.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>

#include "datagram/header.h"

namespace uiw::datagram {

// How a datagram came: what IP says of it. Addresses as in GIDs, IPv4 mapped.
struct Envelope {
  in6_addr source{};
  in6_addr destination{};  // one of this host, or a group
  uint32_t ifindex = 0;    // the interface by which it came; of a copy of what was sent to a group,
                           // that by which it went
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
};

inline constexpr uint32_t kGrhSize = 40;
using Grh = std::array<uint8_t, kGrhSize>;

// RoCE v1: a GRH whose next header is InfiniBand's transport; of an IPv4 group the group's GID is
// ff0e::ffff:a.b.c.d there. RoCE v2: an IPv6 header with UDP behind it, or, of IPv4, an IPv4 header
// in the last 20 bytes, and zeros before it (their content is undefined). `payload`: bytes.
Grh make_grh(const Envelope& envelope, GidType type, uint32_t payload);

// What adapters of RoCE say of these bytes in ibv_wc::sl, which has no other use there: 0, a GRH;
// 1, an IPv6 header; 2, an IPv4 header. UCX before 1.19 looks there, and nowhere else, for how to
// read them.
uint8_t header_kind(const Envelope& envelope, GidType type);

}  // namespace uiw::datagram
