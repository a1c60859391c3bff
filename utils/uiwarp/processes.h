// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The processes of this host that publish counters, as far as this user may read them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "counters/snapshot.h"

namespace uiw::tool {

struct Process {
  pid_t pid = 0;
  uid_t user = 0;
  std::string program;
  std::vector<counters::Row> rows;
};

// Sorted by pid; without those of other PID namespaces that have no pid here. `folders`: where the
// folders `uiwarp-<uid>` are looked for.
std::vector<Process> find_processes(const std::vector<std::string>& folders);
// UIWARP_RUNTIME_DIR, XDG_RUNTIME_DIR, /dev/shm, /tmp; for root those of all users too.
std::vector<std::string> runtime_folders();

}  // namespace uiw::tool
