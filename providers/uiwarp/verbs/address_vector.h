// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What an address vector says in terms of IP, be it that of a queue pair's peer (ibv_modify_qp) or
// of an address handle (ibv_create_ah).
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
  kHosts,           // what can be connected to
  kHostsAndGroups,  // what can be sent datagrams to: multicast groups too
};

// Checks a program's address vector for a port of the device. What is wrong is logged as said by
// `caller`. EINVAL: no GID, no such GID index, a destination that is not allowed, of another family
// than the source, or on another host than a loopback device reaches; ENETUNREACH, EHOSTUNREACH: no
// route. Thread: any.
core::Result<AddressVector> resolve(const device::Device& device, const device::Face& face,
                                    const ibv_ah_attr& attr, Destinations allowed, core::Told& told,
                                    const char* caller);

}  // namespace uiw::verbs
