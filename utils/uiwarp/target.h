// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Programs as the shell finds them. Of the one that `uiwarp run` is about to start: will it load a
// preloaded library?
#pragma once

#include <string>

#include "layout.h"

namespace uiw::tool {

// The file execvp(name) would run, or empty with `error` = ENOENT or EACCES.
std::string find_program(const std::string& name, int& error);

// Empty when the program will see the device; else a sentence that says why it will not.
std::string why_invisible(const std::string& path);

// How this command is started from a shell: "uiwarp" where PATH leads to it, else its path.
std::string command_of(const Layout& layout);

}  // namespace uiw::tool
