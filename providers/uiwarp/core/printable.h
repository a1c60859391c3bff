// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Makes foreign text safe for terminals and other formats.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace uiw::core {

// Replaces whatever is not printable ASCII by question marks.
inline std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

}  // namespace uiw::core
