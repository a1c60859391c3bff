// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace_capture.h"

#include <algorithm>
#include <cinttypes>

#include "trace/capture.h"

namespace uiw::tool {

bool has_fpdus(std::span<const trace::Snapshot> snapshots) {
  for (const trace::Snapshot& snapshot : snapshots)
    for (const trace::Record& record : snapshot.records)
      if (record.kind == trace::Kind::kFpdu) return true;
  std::fprintf(stderr,
               "uiwarp: no FPDUs were recorded: trace the program with `uiwarp run --trace "
               "FILE,fpdus`\n");
  return false;
}

bool write_fpdus(std::span<const trace::Snapshot> snapshots, std::FILE* out) {
  const trace::Wire wire = trace::wire_of(snapshots);
  if (wire.unplaced > 0)
    std::fprintf(stderr,
                 "uiwarp: %" PRIu64
                 " FPDUs are left out, as the records that say which connection they are of are "
                 "lost: trace with a larger size=\n",
                 wire.unplaced);
  const uint64_t surplus = trace::surplus_of(wire);
  if (surplus > 0)
    std::fprintf(stderr,
                 "uiwarp: the %" PRIu64 " oldest FPDUs are left out: the capture has 1 GiB\n",
                 surplus);
  return trace::write_capture(wire, surplus, out);
}

}  // namespace uiw::tool
