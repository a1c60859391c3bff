// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/face.h"

namespace uiw::device {
namespace {

// Of the first type are the GIDs of an adapter that knows nothing else.
constexpr const char* kIwarpGids[] = {"IB/RoCE v1"};
constexpr const char* kRoceGids[] = {"IB/RoCE v1", "RoCE v2"};

constexpr ibv_qp_type kIwarpTypes[] = {IBV_QPT_RC};
constexpr ibv_qp_type kRoceTypes[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

constexpr Face kIwarp{
    .name = "iwarp",
    .node_type = "4: RNIC",
    .protocol = "iw",
    .gid_types = kIwarpGids,
    .port_capabilities = IBV_PORT_CM_SUP,
    .port_flags = 0,
    .first_state = IBV_QPS_INIT,  // iWARP's IDLE: whoever connects need not modify it
    .qp_types = kIwarpTypes,
    .cm = CmRules::kIwarp,
    .atomics = IBV_ATOMIC_GLOB,  // CPU instructions: qp/rx_atomic.cc
    .address_handles = false,
    .send_with_immediate = false,
    .zero_length_regions = false,
    .loopback_beside_others = true,
};

constexpr Face kRoce{
    .name = "roce",
    .node_type = "1: CA",
    .protocol = "roce",
    .gid_types = kRoceGids,
    .port_capabilities = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
    .port_flags = IBV_QPF_GRH_REQUIRED,  // an address vector without a GID means nothing
    .first_state = IBV_QPS_RESET,
    .qp_types = kRoceTypes,
    .cm = CmRules::kInfiniband,
    .atomics = IBV_ATOMIC_HCA,  // all that adapters promise, and all that some programs look for
    .address_handles = true,
    .send_with_immediate = true,
    .zero_length_regions = true,
    .loopback_beside_others = false,  // no adapter has one
};

}  // namespace

const Face& face(core::Face which) {
  return which == core::Face::kRoce ? kRoce : kIwarp;
}

const Face& face() {
  return face(core::settings().face);
}

}  // namespace uiw::device
