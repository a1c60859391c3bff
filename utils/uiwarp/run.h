// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <string>
#include <vector>

#include "layout.h"

namespace uiw::tool {

// Executes argv (a program and its arguments, ended by a null pointer) with the device visible.
// Returns only on failure, the status to exit with: 127 not found, 126 found but not executable,
// 125 uiwarp itself is incomplete.
int run_program(const Layout& layout, char** argv);
int run_program(const Layout& layout, const std::vector<std::string>& command);

// 0: it can be started; else the status to exit with, as above, and it has been said why not.
int why_not_started(const Layout& layout, const std::vector<std::string>& command);

}  // namespace uiw::tool
