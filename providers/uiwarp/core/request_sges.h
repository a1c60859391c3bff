// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The SGEs of a work request, for code that inspects posts of a program. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <limits>
#include <span>

#include "core/verbs_names.h"

namespace uiw::core {

// The SGEs that are used when the request is carried out: none for LOCAL_INV and BIND_MW, whose
// list and count may be anything; and none if the count is refused: a negative one, or more than
// `most`.
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
