// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many processors there are for us, and whether they are enough for who wants to run.
#pragma once

#include <string_view>

namespace uiw::core {

// On how many processors this process may run; 0 where that cannot be known. One system call.
// Thread: any.
int processors();

// More threads of this machine want to run at this moment than there are processors on which this
// process may. False where that cannot be known. Takes a few microseconds. Thread: any.
bool processors_are_short();

// The same from what /proc/loadavg says (proc_loadavg(5), fourth field: runnable/all).
bool more_run_than(std::string_view loadavg, int processors);

}  // namespace uiw::core
