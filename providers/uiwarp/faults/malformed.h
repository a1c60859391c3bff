// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Requests that the next table refuses for what they are. They go there at once, to be refused: a
// program that was told they are posted would see its queue pair fail later. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/request_sges.h"

namespace uiw::faults {

// For a queue pair that was granted `cap`. Which opcodes it has only the next table knows.
inline bool is_malformed(const ibv_send_wr& wr, const ibv_qp_cap& cap) {
  constexpr uint64_t kAtomicSize = 8;
  const uint32_t opcode = core::value_of(wr.opcode);
  if (opcode > IBV_WR_SEND_WITH_INV) return true;
  if (opcode == IBV_WR_BIND_MW)
    return !wr.bind_mw.mw || (!wr.bind_mw.bind_info.mr && wr.bind_mw.mw->type != IBV_MW_TYPE_1);
  if (opcode == IBV_WR_LOCAL_INV) return false;
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > cap.max_send_sge) return true;
  const uint64_t bytes = core::bytes_of(core::sges_of(wr));
  const bool is_inline = wr.send_flags & IBV_SEND_INLINE;
  if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
    return is_inline || bytes < kAtomicSize || wr.wr.atomic.remote_addr % kAtomicSize != 0;
  return is_inline && (opcode == IBV_WR_RDMA_READ || bytes > cap.max_inline_data);
}

}  // namespace uiw::faults
