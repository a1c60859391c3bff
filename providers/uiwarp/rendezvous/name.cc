// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/name.h"

#include <arpa/inet.h>

#include "transport/addresses.h"

namespace uiw::rendezvous {

sockaddr_storage address_of(const in6_addr& gid, uint16_t port, unsigned ifindex) {
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

bool is_loopback(const in6_addr& gid) {
  return transport::is_loopback(address_of(gid, 0, 0));
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

}  // namespace uiw::rendezvous
