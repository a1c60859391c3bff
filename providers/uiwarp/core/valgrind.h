// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whether valgrind runs this process.
#pragma once

namespace uiw::core {

// Determined when the library is loaded. True under every tool of valgrind. Thread: any.

// True under every tool of valgrind's. Thread: any.
bool under_valgrind();
// True under memcheck, which replaces malloc(), aligned_alloc() and free() of the program. Thread:
// any.
bool under_memcheck();

}  // namespace uiw::core
