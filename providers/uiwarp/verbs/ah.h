// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// An address handle: where a datagram is to go.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "verbs/pd.h"

// Does not change while it exists.
struct uiwarp_ah {
  uiwarp_pd* pd = nullptr;
  sockaddr_storage destination{};  // of a host or of a multicast group; port 0
  in6_addr source{};               // our GID: an address of the device, of the same family
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
};
