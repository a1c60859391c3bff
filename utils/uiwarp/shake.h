// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout.h"

namespace uiw::tool {

struct ShakePlan {
  uint64_t runs = 100;
  uint64_t first_seed = 1;
  double timeout = 60;  // seconds, of each run
  bool why = false;     // what of --shake it is that the run fails by
};

// Runs `command` under --shake with one seed after the other until a run fails or hangs; prints
// what that one printed, its seed, how to repeat it, and, if asked for, why. The exit status: 0
// none failed; 1 one did; 125, 126, 127 as of run_program(), when no run can begin; 128 + the
// signal that ended us.
int shake(const Layout& layout, const ShakePlan& plan, const std::vector<std::string>& command);

}  // namespace uiw::tool
