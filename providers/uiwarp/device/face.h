// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What kind of adapter our devices present themselves as. The wire is iWARP's in any case; a face
// is what programs see of it. This table is the only place that tells faces apart: whoever does
// something by the face asks for a member of it.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/settings.h"

namespace uiw::device {

// Whose rules an rdma_cm_id follows: which events come in which order, who moves the queue pair
// through its states, how much private data there is room for.
enum class CmRules {
  kIwarp,       // the connection takes the queue pair to RTS; ESTABLISHED at both ends
  kInfiniband,  // librdmacm moves the queue pair; CONNECT_RESPONSE where it has none
};

struct Face {
  const char* name;                        // as UIWARP_FACE says it
  const char* node_type;                   // as in sysfs: what libibverbs goes by
  const char* protocol;                    // as netlink says it to rdma(8)
  std::span<const char* const> gid_types;  // as in sysfs; each address has one GID of each type
  uint32_t port_capabilities;              // IBV_PORT_*
  uint8_t port_flags;                      // IBV_QPF_*
  ibv_qp_state first_state;                // of a queue pair that was just created
  std::span<const ibv_qp_type> qp_types;   // that ibv_create_qp() makes
  CmRules cm;
  ibv_atomic_cap atomics;    // as ibv_query_device() says it; what they are is the same
  bool address_handles;      // ibv_create_ah()
  bool send_with_immediate;  // IBV_WR_SEND_WITH_IMM, towards a uiwarp that has it too
  bool zero_length_regions;  // ibv_reg_mr() of no bytes within a page
  // Whether there is a device of lo beside others, when nobody says which there are to be.
  bool loopback_beside_others;

  // Whether ibv_create_qp() makes queue pairs of this type, which may be no type at all.
  bool has(int qp_type) const {
    return std::find(qp_types.begin(), qp_types.end(), qp_type) != qp_types.end();
  }
};

// Of this process. Thread: any.
const Face& face();
const Face& face(core::Face which);

}  // namespace uiw::device
