// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp faults`: what the rules of a file for --faults do.
#pragma once

#include <string>

namespace uiw::tool {

// Prints each rule of the file in words. Exit status: 0; 2 when a rule is wrong, or the file cannot
// be read, which is said on standard error.
int explain_faults(const std::string& path);

}  // namespace uiw::tool
