// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Log messages for local protection errors: which SGE of which request, and what is wrong with it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/cause.h"
#include "core/explain.h"
#include "mem/table.h"

namespace uiw::queue {

// The request that names the memory.
struct Request {
  uint32_t qp_num = 0;
  uint64_t wr_id = 0;
  const char* what = "";  // "SEND", "receive"
  uint32_t pd = 0;
  uint32_t rights = 0;  // mem::Access: rights that its memory needs
};

// SGE `index`, of which `used` bytes are used, was refused. Returns why. The caller must hold no
// reference through a memory window. Thread: any.
core::Cause explain_sge(core::Told& told, const mem::Table& memory, const Request& request,
                        uint32_t index, const ibv_sge& sge, uint64_t used);
// The same for the first bad SGE among those that `length` bytes occupy.
core::Cause explain_sges(core::Told& told, const mem::Table& memory, const Request& request,
                         const ibv_sge* sges, uint32_t count, uint64_t length);

}  // namespace uiw::queue
