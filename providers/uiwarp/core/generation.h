// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Distinguishes a process from forks that have a copy of its memory.
#pragma once

namespace uiw::core {

// A number that is constant in a process and differs in every child that has a copy of its memory,
// however the child was made. A child that shares the memory (vfork) sees the parent's. Never 0.
// Costs no system call: it is on a page that the kernel clears in children (madvise(2),
// MADV_WIPEONFORK). If there is no such page, it is the process id. Thread: any, and signal
// handlers.
unsigned generation();

}  // namespace uiw::core
