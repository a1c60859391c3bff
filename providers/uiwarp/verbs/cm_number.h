// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How rdma_cm names the peer of a connection to programs that move their queue pair themselves.
#pragma once

#include <cstdint>

namespace uiw::verbs {

// MPA does not tell the peer's queue pair number. In its place stands the number of the queue pair
// by which InfiniBand's connection manager itself speaks: no other has it (verbs/registry.cc), and
// none can be connected to it. As dest_qp_num in ibv_modify_qp it says that the stream comes from
// the rdma_cm_id, and that there is no peer to search for.
inline constexpr uint32_t kCmQpNum = 1;

}  // namespace uiw::verbs
