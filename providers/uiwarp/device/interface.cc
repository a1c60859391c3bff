// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/interface.h"

#include <cstring>

namespace uiw::device {

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

}  // namespace uiw::device
