// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Text for people to read on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace uiw::core {

// `text` in lines of at most 100 columns, broken at spaces and each with its end. All are indented
// by `indent`, those behind the first by `hang` more.
std::string wrapped(std::string_view text, size_t indent, size_t hang = 0);

}  // namespace uiw::core
