// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Is this process one that valgrind runs?
#pragma once

namespace uiw::core {

// True under every tool of valgrind's. Looks through the loaded libraries, so not for a data path.
// Thread: any.
bool under_valgrind();
// True under memcheck, whose malloc(), aligned_alloc() and free() then take the place of the
// program's. Looks once per process. Thread: any.
bool under_memcheck();

}  // namespace uiw::core
