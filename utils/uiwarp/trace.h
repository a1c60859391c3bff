// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp trace`: what `uiwarp run --trace` has recorded.
#pragma once

#include <string>
#include <vector>

namespace uiw::tool {

enum class TraceAs { kText, kJson };

// Shows what is in the files, merged by time. With `perfetto` it is written to that file instead,
// as trace events that ui.perfetto.dev opens; with `pcap` the FPDUs to that one, as a capture. The
// exit status: 0, or 2 when a file cannot be read or written.
int show_trace(const std::vector<std::string>& files, TraceAs as, const std::string& perfetto,
               const std::string& pcap);

}  // namespace uiw::tool
