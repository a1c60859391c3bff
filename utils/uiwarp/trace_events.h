// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A history in the Trace Event Format, JSON that ui.perfetto.dev and chrome://tracing open.
#pragma once

#include <cstdio>

#include "trace/history.h"

namespace uiw::tool {

// Each queue pair is a group of tracks of its own, each request that completed a span there, each
// event a moment. False: it could not be written, errno says why.
bool write_trace_events(const trace::History& history, std::FILE* out);

}  // namespace uiw::tool
