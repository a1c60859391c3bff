// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp stat`: what programs are doing with their queue pairs.
#pragma once

#include <sys/types.h>

namespace uiw::tool {

enum class StatAs { kText, kJson, kPrometheus };

// Of one process, or of all (0). Exit status: 0; 1 when there is no such process, or it publishes
// nothing that this user may read.
int stat(pid_t only, StatAs as);
// The same as text, anew each `seconds`, with rates in place of sums, until a signal comes.
int watch(pid_t only, double seconds);

}  // namespace uiw::tool
