// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Runs a helper program for a limited time and collects what it printed.
#pragma once

#include <string>
#include <vector>

#include "layout.h"

namespace uiw::tool {

struct ChildResult {
  int status = -1;         // exit status; 128 + signal when killed by one; -1: could not start
  bool timed_out = false;  // it was killed at the limit
  std::string output;      // what was collected, in order
};

// How the helper comes to see the devices: as what `uiwarp run` starts, or only by what the system
// has, with nothing in its environment that would help.
enum class Visibility { kRun, kSystemWide };

// What is collected of what it prints.
enum class Collected {
  kAll,     // standard output and standard error
  kOutput,  // standard output; its standard error is ours
};

// Starts `arguments` (the first an absolute path), waits at most `limit_ms`, then kills it.
ChildResult run_child(const Layout& layout, const std::vector<std::string>& arguments, int limit_ms,
                      Visibility how = Visibility::kRun, Collected what = Collected::kAll);

// Whether what the helper said to "devices" names one of ours.
bool lists_devices(const ChildResult& result);

}  // namespace uiw::tool
