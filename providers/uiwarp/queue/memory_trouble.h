// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A local protection error, in words: which SGE of which request, and what is wrong with it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/cause.h"
#include "core/explain.h"
#include "mem/table.h"

namespace uiw::queue {

// Whose memory it is.
struct Request {
  uint32_t qp_num = 0;
  uint64_t wr_id = 0;
  const char* what = "";  // "SEND", "receive"
  uint32_t pd = 0;
  uint32_t rights = 0;  // mem::Access: what its memory needs
};

// That SGE, of which `used` bytes count, was refused. Returns why. The caller holds no reference of
// a memory window. Thread: any.
core::Cause explain_sge(core::Told& told, const mem::Table& memory, const Request& request,
                        uint32_t index, const ibv_sge& sge, uint64_t used);
// The same for the first SGE that is wrong among those that `length` bytes occupy.
core::Cause explain_sges(core::Told& told, const mem::Table& memory, const Request& request,
                         const ibv_sge* sges, uint32_t count, uint64_t length);

}  // namespace uiw::queue
