// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Libraries that are unloaded: at their addresses there may be other code afterwards.
#pragma once

#include <cstdint>

namespace uiw::check {

// How many were unloaded so far. Asks the loader for its lock, as do exceptions: some 50 ns.
// Thread: any, within the fork gate.
uint64_t unloads();

}  // namespace uiw::check
