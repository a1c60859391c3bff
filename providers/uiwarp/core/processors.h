// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many processors there are for us, and whether they are enough for who wants to run.
#pragma once

#include <optional>
#include <string_view>

#include "core/clock.h"

namespace uiw::core {

// On how many processors this process may run; 0 where that cannot be known. One system call.
// Thread: any.
int processors();

// More threads of this machine want to run at this moment than there are processors on which this
// process may. False where that cannot be known. Takes a few microseconds. Thread: any.
bool processors_are_short();

// The same from what /proc/loadavg says (proc_loadavg(5), fourth field: runnable/all).
bool more_run_than(std::string_view loadavg, int processors);

// Of a thread since it began: for how long it ran, and for how long it could have run while others
// had its processor.
struct RunTime {
  Nanoseconds ran = 0, waited = 0;
};

// Of the calling thread; nothing where the kernel does not say. Takes a few microseconds.
// Thread: any.
std::optional<RunTime> run_time();

// The same from what /proc/<pid>/schedstat says (Documentation/scheduler/sched-stats.rst: time on
// the processor and time on its queue, in nanoseconds, and a count).
std::optional<RunTime> parse_run_time(std::string_view schedstat);

}  // namespace uiw::core
