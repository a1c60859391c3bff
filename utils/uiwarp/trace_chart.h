// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The pictures of a trace's page: SVG that is stretched to any width, and labels of HTML beside it
// that keep their size. Each is bounded as its digest is.
#pragma once

#include <string>

#include "trace/digest.h"

namespace uiw::tool {

// Bytes and requests a second, of one process and opcode.
std::string rate_chart(const trace::History& history, const trace::Bins& bins,
                       const trace::Series& series);

// One opcode of one queue pair, with its percentiles.
std::string histogram_chart(const trace::History& history, const trace::Histogram& histogram);

// Latency over time, with what failed and waited below.
std::string heat_chart(const trace::Digest& digest);

}  // namespace uiw::tool
