// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include "layout.h"

namespace uiw::tool {

// Executes argv (a program and its arguments, ended by a null pointer) with the device visible.
// Returns only on failure, the status to exit with: 127 not found, 126 found but not executable,
// 125 uiwarp itself is incomplete.
int run_program(const Layout& layout, char** argv);

}  // namespace uiw::tool
