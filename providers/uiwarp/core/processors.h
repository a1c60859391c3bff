// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whether there are enough processors for who wants to run.
#pragma once

#include <string_view>

namespace uiw::core {

// More threads of this machine want to run at this moment than there are processors on which this
// process may. False where that cannot be known. Takes a few microseconds. Thread: any.
bool processors_are_short();

// The same from what /proc/loadavg says (proc_loadavg(5), fourth field: runnable/all).
bool more_run_than(std::string_view loadavg, int processors);

}  // namespace uiw::core
