// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What passed on connections as a pcapng file, for Wireshark: IP packets with TCP segments, each of
// one FPDU. doc/decisions/034-a-capture-from-a-trace.md
#pragma once

#include <cstdint>
#include <cstdio>

#include "trace/wire.h"

namespace uiw::trace {

inline constexpr uint64_t kMostCapture = uint64_t{1} << 30;  // bytes

// FPDUs that are left out so that the file has about `most` bytes: the oldest. It would have more.
uint64_t surplus_of(const Wire& wire, uint64_t most = kMostCapture);

// Writes it without the first `left_out` FPDUs. False: it could not be written, errno says why.
bool write_capture(const Wire& wire, uint64_t left_out, std::FILE* out);

}  // namespace uiw::trace
