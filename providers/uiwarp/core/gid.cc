// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/gid.h"

#include <arpa/inet.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace uiw::core {

in6_addr mapped(in_addr ipv4) {
  in6_addr out{};
  out.s6_addr[10] = out.s6_addr[11] = 0xff;
  std::memcpy(out.s6_addr + 12, &ipv4, sizeof ipv4);
  return out;
}

bool address_of(const sockaddr_storage& address, in6_addr& out) {
  if (address.ss_family == AF_INET) {
    out = mapped(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
    return true;
  }
  if (address.ss_family == AF_INET6) {
    out = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return true;
  }
  return false;
}

in6_addr gid_of(const sockaddr_storage& address) {
  in6_addr gid{};
  address_of(address, gid);
  return gid;
}

sockaddr_storage socket_address_of(const in6_addr& gid, uint16_t port, unsigned ifindex) {
  sockaddr_storage address{};
  if (IN6_IS_ADDR_V4MAPPED(&gid)) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, gid.s6_addr + 12, sizeof v4.sin_addr);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = gid;
    if (IN6_IS_ADDR_LINKLOCAL(&gid) || IN6_IS_ADDR_MC_LINKLOCAL(&gid)) v6.sin6_scope_id = ifindex;
  }
  return address;
}

GidText text_of(const in6_addr& gid) {
  GidText result;
  if (IN6_IS_ADDR_V4MAPPED(&gid)) {
    inet_ntop(AF_INET, gid.s6_addr + 12, result.text, sizeof result.text);
  } else {
    inet_ntop(AF_INET6, &gid, result.text, sizeof result.text);
  }
  return result;
}

bool is_routed(const in6_addr& address) {
  const bool ipv4_link_local =
      IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 169 && address.s6_addr[13] == 254;
  return !IN6_IS_ADDR_UNSPECIFIED(&address) && !IN6_IS_ADDR_LINKLOCAL(&address) && !ipv4_link_local;
}

uint16_t port_of(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return 0;
  // Both families have it at the same offset.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

EndpointText text_of(const sockaddr_storage& address) {
  EndpointText result;
  in6_addr gid;
  if (!address_of(address, gid)) return result;
  const char* const form = IN6_IS_ADDR_V4MAPPED(&gid) ? "%s:%u" : "[%s]:%u";
  std::snprintf(result.text, sizeof result.text, form, text_of(gid).text,
                unsigned{port_of(address)});
  return result;
}

}  // namespace uiw::core
