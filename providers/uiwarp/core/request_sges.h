// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The SGEs of a work request, for who looks at what a program posts. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <limits>
#include <span>

#include "core/verbs_names.h"

namespace uiw::core {

// Those that are looked at when it is carried out: none of LOCAL_INV and BIND_MW, whose list and
// count are whatever a program has left there. None of a count that is refused: a negative one, or
// more than `most`.
inline std::span<const ibv_sge> sges_of(const ibv_send_wr& wr,
                                        uint32_t most = std::numeric_limits<int>::max()) {
  const uint32_t opcode = value_of(wr.opcode);
  if (opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW || wr.num_sge <= 0) return {};
  const auto count = static_cast<uint32_t>(wr.num_sge);
  return count > most ? std::span<const ibv_sge>{} : std::span(wr.sg_list, count);
}

inline uint64_t bytes_of(std::span<const ibv_sge> sges) {
  uint64_t bytes = 0;
  for (const ibv_sge& sge : sges) bytes += sge.length;
  return bytes;
}

}  // namespace uiw::core
