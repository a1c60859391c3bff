// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/text.h"

#include <cstdarg>
#include <cstdio>

namespace uiw::check {

std::string text(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  const int size = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return size < 0 ? std::string() : std::string(line);
}

}  // namespace uiw::check
