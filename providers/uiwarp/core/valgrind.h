// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Is this process one that valgrind runs?
#pragma once

namespace uiw::core {

// Found out when the library is loaded.

// True under every tool of valgrind's. Thread: any.
bool under_valgrind();
// True under memcheck, whose malloc(), aligned_alloc() and free() then take the place of the
// program's. Thread: any.
bool under_memcheck();

}  // namespace uiw::core
