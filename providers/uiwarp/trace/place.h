// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What stands where a trace is to be written. The command asks it, too, before a program runs in
// vain.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace uiw::trace {

enum class Place {
  kFree,     // nothing is there, or a trace of before, or an empty file
  kInUse,    // a process that runs writes its trace there, or this one has before exec()
  kForeign,  // something else, which stays
};

// When that process began, in ticks since the host did; 0: none that can be seen. The first
// processes of two containers, one after the other, have the same number.
uint64_t started_at(pid_t pid);

// Does not wait, whatever is there. Thread: any.
Place look_at(const std::string& path);

}  // namespace uiw::trace
