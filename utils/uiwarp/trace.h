// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp trace`: what `uiwarp run --trace` has recorded.
#pragma once

#include <string>
#include <vector>

namespace uiw::tool {

enum class TraceAs {
  kText,      // to standard output
  kJson,      // the same
  kTimeline,  // into a file, as trace events that ui.perfetto.dev opens
  kCapture,   // the FPDUs into a file, as a capture that Wireshark opens
  kPage,      // into a file, as a page for a browser
};

// Shows what is in the files, merged by time; `to`: what is written, should it be a file. The exit
// status: 0, or 2 when a file cannot be read or written.
int show_trace(const std::vector<std::string>& files, TraceAs as, const std::string& to);

}  // namespace uiw::tool
