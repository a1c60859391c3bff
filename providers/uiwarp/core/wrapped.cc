// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/wrapped.h"

#include <algorithm>

namespace uiw::core {

std::string wrapped(std::string_view text, size_t indent, size_t hang) {
  constexpr size_t kColumns = 100;
  std::string result, line(indent, ' ');
  bool empty = true;  // the line has no words yet
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      result += line + "\n";
      line.assign(indent + hang, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
    at = end + 1;
  }
  return result + line + "\n";
}

}  // namespace uiw::core
