// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Libraries that are unloaded: at their addresses there may be other code afterwards.
#pragma once

#include <cstdint>

namespace uiw::check {

// How many were unloaded so far. Asks the loader for its lock, as do exceptions: some 50 ns.
// Thread: any.
uint64_t unloads();

// The loader does not free its lock in a child: from before a fork until behind it no thread is
// in unloads().
void hold_unloads();
void let_unloads_go();

}  // namespace uiw::check
