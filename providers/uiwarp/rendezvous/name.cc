// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/name.h"

#include <arpa/inet.h>

#include "device/gid_table.h"
#include "transport/addresses.h"

namespace uiw::rendezvous {

bool is_loopback(const in6_addr& gid) {
  return transport::is_loopback(device::socket_address_of(gid, 0, 0));
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
