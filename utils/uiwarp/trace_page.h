// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A history as one page of HTML, for people.
#pragma once

#include <string>

#include "trace/history.h"

namespace uiw::tool {

// One file that needs no other, no network and no script, and is well-formed XML too. Its size is
// bounded: it says how much is left out. All text of the trace is escaped.
std::string trace_page(const trace::History& history);

// An instant in nanoseconds since 1970: "2026-11-29T02:30:20Z".
std::string moment(int64_t nanoseconds);

}  // namespace uiw::tool
