// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Translates an address vector into IP addresses: that of a queue pair's peer (ibv_modify_qp) or of
// an address handle (ibv_create_ah).
#pragma once

#include <infiniband/verbs.h>

#include "core/explain.h"
#include "core/result.h"
#include "datagram/header.h"
#include "device/device.h"
#include "device/face.h"

namespace uiw::verbs {

struct AddressVector {
  in6_addr source{};  // an address of the device, IPv4 mapped as in all GIDs
  in6_addr destination{};
  datagram::GidType gid_type = datagram::GidType::kV1;  // of the source
};

enum class Destinations {
  kHosts,           // allowed for connections
  kHostsAndGroups,  // allowed for datagrams: multicast groups too
};

// Checks a program's address vector for a port of the device. Errors are logged in the name of
// `caller`. EINVAL: no GID, no such GID index, a destination that is not allowed, that has another
// address family than the source, or that a loopback device cannot reach as it is on another host;
// ENETUNREACH, EHOSTUNREACH: no route. Thread: any.
core::Result<AddressVector> resolve(const device::Device& device, const device::Face& face,
                                    const ibv_ah_attr& attr, Destinations allowed, core::Told& told,
                                    const char* caller);

}  // namespace uiw::verbs
