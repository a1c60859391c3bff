// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp trace --pcap`: the FPDUs that were recorded, as a capture that Wireshark opens.
#pragma once

#include <cstdio>
#include <span>

#include "trace/snapshot.h"

namespace uiw::tool {

// Whether there is an FPDU to be written; else says why not.
bool has_fpdus(std::span<const trace::Snapshot> snapshots);

// Says what could not be written for want of records or of room. False: `out` could not be written,
// errno says why.
bool write_fpdus(std::span<const trace::Snapshot> snapshots, std::FILE* out);

}  // namespace uiw::tool
