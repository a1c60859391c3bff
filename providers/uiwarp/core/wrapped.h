// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Text for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace uiw::core {

// Breaks `text` at spaces into lines of at most 100 columns, each with a newline. Indents all lines
// by `indent`, those after the first by `hang` more.
std::string wrapped(std::string_view text, size_t indent, size_t hang = 0);

}  // namespace uiw::core
