// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "queue/memory_trouble.h"

#include <algorithm>
#include <cinttypes>

#include "core/settings.h"
#include "mem/diagnosis.h"

namespace uiw::queue {
namespace {

mem::Wanted wanted_of(const Request& request, const ibv_sge& sge, uint64_t used) {
  return {.key = sge.lkey, .address = sge.addr, .length = used, .rights = request.rights};
}

}  // namespace

core::Cause explain_sge(core::Told& told, const mem::Table& memory, const Request& request,
                        uint32_t index, const ibv_sge& sge, uint64_t used) {
  const mem::Wanted wanted = wanted_of(request, sge, used);
  const mem::Diagnosis found = mem::diagnose_local(memory, request.pd, wanted);
  if (core::settings().checked()) return mem::cause_of(found.trouble);
  core::explain(told,
                "queue pair 0x%06x: wr_id 0x%" PRIx64
                " (%s): SGE %u (lkey 0x%08x, address 0x%" PRIx64 ", %" PRIu64
                " bytes) is not memory that it may use: %s",
                request.qp_num, request.wr_id, request.what, index, sge.lkey, sge.addr, used,
                mem::describe(found, wanted, "lkey").text);
  return mem::cause_of(found.trouble);
}

core::Cause explain_sges(core::Told& told, const mem::Table& memory, const Request& request,
                         const ibv_sge* sges, uint32_t count, uint64_t length) {
  for (uint32_t i = 0; i < count && length > 0; ++i) {
    const uint64_t used = std::min<uint64_t>(sges[i].length, length);
    length -= used;
    if (used == 0) continue;
    const mem::Wanted wanted = wanted_of(request, sges[i], used);
    if (mem::diagnose_local(memory, request.pd, wanted).trouble == mem::Trouble::kNone) continue;
    return explain_sge(told, memory, request, i, sges[i], used);
  }
  return core::Cause::kKeyChanged;
}

}  // namespace uiw::queue
