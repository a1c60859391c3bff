// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp faults PID`: the rules of programs that run, shown and changed.
#pragma once

#include <sys/types.h>

#include <string>

namespace uiw::tool {

enum class LiveAs { kText, kJson };

// The rules that are in force in a process, or with 0 in all of this user's, and how often each was
// carried out. The exit status.
int show_live_faults(pid_t pid, LiveAs as);

// Gives a process the rules that `name` means, as of find_faults(); then as show_live_faults(). The
// exit status: 2 when the rules cannot be used, 1 when the process cannot be asked or has refused.
int change_live_faults(pid_t pid, const std::string& name, LiveAs as);

}  // namespace uiw::tool
