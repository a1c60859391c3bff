// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// GIDs of multicast groups. Groups are known by the address that IP has for them, IPv4 mapped
// (::ffff:a.b.c.d); RoCE v1 names those of IPv4 ff0e::ffff:a.b.c.d. IP keeps a group of
// interface-local scope (ff01::) on its host. Adapters send to it as to any other, so here it is
// the one of link-local scope.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <cstring>

#include "core/be.h"

namespace uiw::datagram {

inline bool is_group(const in6_addr& gid) {
  return IN6_IS_ADDR_MULTICAST(&gid) ||
         (IN6_IS_ADDR_V4MAPPED(&gid) && IN_MULTICAST(core::load_be32(gid.s6_addr + 12)));
}

inline bool is_v1_gid_of_ip4(const in6_addr& gid) {
  constexpr uint8_t kPrefix[12] = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(&gid, kPrefix, sizeof kPrefix) == 0 &&
         IN_MULTICAST(core::load_be32(gid.s6_addr + 12));
}

// Any GID: that of a group as IP knows it, others as they are.
inline in6_addr address_of_gid(const in6_addr& gid) {
  constexpr uint8_t kScope = 0x0f, kLinkLocal = 0x02;
  in6_addr address = gid;
  if (is_v1_gid_of_ip4(gid)) address.s6_addr[0] = address.s6_addr[1] = 0;
  if (IN6_IS_ADDR_MC_NODELOCAL(&gid))
    address.s6_addr[1] = static_cast<uint8_t>((gid.s6_addr[1] & ~kScope) | kLinkLocal);
  return address;
}

// The other way round, for a group.
inline in6_addr v1_gid_of(const in6_addr& group) {
  in6_addr gid = group;
  if (IN6_IS_ADDR_V4MAPPED(&group)) {
    gid.s6_addr[0] = 0xff;
    gid.s6_addr[1] = 0x0e;
  }
  return gid;
}

}  // namespace uiw::datagram
