// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many processors this process may use, and whether they suffice for the runnable threads.
#pragma once

#include <optional>
#include <string_view>

#include "core/clock.h"

namespace uiw::core {

// On how many processors this process may run; 0 if unknown. One system call. Thread: any.
int processors();

// Whether this machine has more runnable threads at this moment than there are processors on which
// this process may run. False if unknown. Takes a few microseconds. Thread: any.
bool processors_are_short();

// The same from the text of /proc/loadavg (proc_loadavg(5), fourth field: runnable/all).
bool more_run_than(std::string_view loadavg, int processors);

// How long a thread has run since it began, and how long it was runnable while others had its
// processor.
struct RunTime {
  Nanoseconds ran = 0, waited = 0;
};

// For the calling thread; nothing if the kernel does not say. Takes a few microseconds. Thread:
// any.
std::optional<RunTime> run_time();

// The same from the text of /proc/<pid>/schedstat (Documentation/scheduler/sched-stats.rst: time on
// the processor and time on its queue, in nanoseconds, and a count).
std::optional<RunTime> parse_run_time(std::string_view schedstat);

}  // namespace uiw::core
