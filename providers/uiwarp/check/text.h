// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sentences of findings.
#pragma once

#include <string>

namespace uiw::check {

// As printf().
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace uiw::check
