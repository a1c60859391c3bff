// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Is this process one that valgrind runs?
#pragma once

namespace uiw::core {

// True under every tool of valgrind's. Looks through the loaded libraries, so not for a data path.
// Thread: any.
bool under_valgrind();

}  // namespace uiw::core
