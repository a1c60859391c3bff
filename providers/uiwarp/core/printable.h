// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Text of others, for terminals and other formats.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace uiw::core {

// With a question mark in the place of whatever is not printable ASCII.
inline std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

}  // namespace uiw::core
