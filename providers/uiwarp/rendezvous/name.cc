// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/name.h"

#include "core/gid.h"
#include "transport/addresses.h"

namespace uiw::rendezvous {

bool is_loopback(const in6_addr& gid) {
  return transport::is_loopback(core::socket_address_of(gid, 0, 0));
}

}  // namespace uiw::rendezvous
