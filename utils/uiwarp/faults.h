// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// `uiwarp faults` without a process: what rules of a file for --faults do, and what they are made
// of.
#pragma once

#include <string>

namespace uiw::tool {

// The file that `name` means, as of faults::find_rules().
std::string find_faults(const std::string& name, std::string& problem);

// The ready-made ones, each with what it is for. The exit status.
int list_faults();

// Says it of each rule of a file, or what is wrong with it. The exit status: 0, or 2 when the file
// cannot be used.
int explain_faults(const std::string& path);

// The tables of doc/faults.md.
void print_faults_markdown();

}  // namespace uiw::tool
