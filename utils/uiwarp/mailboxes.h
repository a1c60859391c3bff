// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Processes of this user that run under --faults, and what they answer.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "faults/mailbox.h"

namespace uiw::tool {

// What asking a process has come to. The text of one that has not answered, which is for people,
// says what to do.
struct Reply {
  bool answered = false;
  std::string text;
};

// Asks a process; returns after six seconds at most.
Reply ask(pid_t pid, const faults::Question& question);

// Those that can be asked, sorted.
std::vector<pid_t> processes_under_faults();

// As /proc/PID/comm; "?" when it has ended.
std::string program_of(pid_t pid);

}  // namespace uiw::tool
