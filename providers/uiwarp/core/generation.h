// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Tells the memory of one process from the copies that forks of it have.
#pragma once

namespace uiw::core {

// A number that stays the same as long as the process lives, and is another one in every child that
// has a copy of its memory, however that was made. A child that shares the memory (vfork) sees the
// parent's. Never 0, and costs no system call: it is on a page that the kernel clears in children
// (madvise(2), MADV_WIPEONFORK). Where there is no such page it is the process id.
// Thread: any, and signal handlers.
unsigned generation();

}  // namespace uiw::core
