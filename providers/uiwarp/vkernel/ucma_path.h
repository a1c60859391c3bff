// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The way from an id to its peer as InfiniBand says it: GIDs, path records, address vector. Thread:
// any.
#pragma once

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "cm/cm.h"

namespace uiw::vkernel {

inline constexpr uint16_t kDefaultPkey = 0xffff;
inline constexpr uint8_t kPort = 1;

// The GIDs of both ends: devices list theirs as IPv4-mapped or as the IPv6 address itself. All zero
// without an address. An address of this host's loopback that is none of the device's GIDs becomes
// the first of those, as with Linux' cma_bind_loopback().
struct Gids {
  in6_addr source, destination;
};
Gids gids_of(const cm::Route& route);

// Whether there is a path to be told of.
bool has_path(const cm::Route& route);
// For QUERY: the record as in MADs.
ib_path_rec_data path_record(const cm::Route& route);
// For QUERY_ROUTE. Without a path its GIDs and P_Key only.
ib_user_path_rec user_path_record(const cm::Route& route);
// Of an id that is bound to a device.
ib_uverbs_ah_attr address_vector(const cm::Route& route);
ibv_mtu path_mtu(const cm::Route& route);

}  // namespace uiw::vkernel
