// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The name of a queue pair, for programs that exchange queue pair numbers and GIDs by themselves,
// and its meaning in TCP's terms: the GID is an address of the host, the upper 16 bits of the
// number are a port of the process, and the lower 8 bits tell its queue pairs apart.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <compare>
#include <cstdint>
#include <cstring>

#include "core/qp_number.h"

namespace uiw::rendezvous {

using core::index_of;
using core::kNumbersPerPort;
using core::number_of;
using core::port_of;

struct Name {
  in6_addr gid{};
  uint32_t qp_num = 0;

  // Both ends order the two names in the same way, which decides which end connects.
  std::strong_ordering operator<=>(const Name& other) const {
    const int order = std::memcmp(&gid, &other.gid, sizeof gid);
    return order != 0 ? order <=> 0 : qp_num <=> other.qp_num;
  }
  bool operator==(const Name& other) const {
    return (*this <=> other) == std::strong_ordering::equal;
  }
};

// Whether the GID is a loopback address, which every host has: 127.0.0.0/8 or ::1.
bool is_loopback(const in6_addr& gid);

}  // namespace uiw::rendezvous
