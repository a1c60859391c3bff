// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Where an address handle points, in the terms of sendmsg(): made once, so that sending only names
// it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "datagram/header.h"

namespace uiw::datagram {

// Does not change while it exists.
struct Destination {
  sockaddr_storage address{};  // of the family of our sockets; the port of a host is 0
  socklen_t address_size = 0;
  bool is_group = false;
  GidType gid_type = GidType::kV1;
  // Source address, traffic class and hop limit.
  static constexpr size_t kMostControl =
      CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int));
  alignas(cmsghdr) std::array<uint8_t, kMostControl> control{};
  size_t control_size = 0;
};

// What an address vector says. Addresses are GIDs, IPv4 mapped, both of the same family.
struct Route {
  in6_addr destination{};  // of a host, or a group
  in6_addr source{};       // an address of the interface
  unsigned ifindex = 0;    // the interface: link-local addresses are there, and groups
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;  // 0: as the host has it
  GidType gid_type = GidType::kV1;
};

// `family`: of the socket that is to send (socket.h). AF_INET knows IPv4 addresses only.
Destination make_destination(const Route& route, sa_family_t family);

// An address handle: what work requests name.
struct AddressHandle {
  uint32_t pd = 0;  // id of the protection domain
  Destination to;
};

}  // namespace uiw::datagram
