// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#pragma once

#include <string>

#include "shaken_command.h"

namespace uiw::tool {

// Which of the liberties of --shake make the command fail, under a seed that it has failed under:
// runs it without any, with each alone, and, where none of them is enough, without each.
// Each several times, as long as it passes. Prints what it finds on standard error. 0, or as
// why_no_result().
int tell_why(const ShakenCommand& command, const std::string& seed);

}  // namespace uiw::tool
