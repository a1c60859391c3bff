// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/log.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/raw_sys.h"
#include "core/settings.h"

namespace uiw::core {
namespace {

constexpr char kPrefix[] = "uiwarp: ";
constexpr size_t kPrefixSize = sizeof kPrefix - 1;
constexpr size_t kMaxLine = 1024;  // longer messages lose their end, never their newline

void write_line(const char* format, va_list arguments) {
  char line[kMaxLine];
  std::memcpy(line, kPrefix, kPrefixSize);
  size_t room = sizeof line - kPrefixSize - 1;
  int wanted = std::vsnprintf(line + kPrefixSize, room, format, arguments);
  if (wanted < 0) return;
  size_t size = static_cast<size_t>(wanted) < room ? static_cast<size_t>(wanted) : room - 1;
  size += kPrefixSize;
  line[size++] = '\n';
  // One call, so that lines of several threads do not mix. A full or closed standard error is the
  // user's choice: nothing to do about it.
  sys::write(STDERR_FILENO, line, size);
}

}  // namespace

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) <= settings().log_level;
}

void log(LogLevel level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_with(level, format, arguments);
  va_end(arguments);
}

void log_with(LogLevel level, const char* format, va_list arguments) {
  if (log_enabled(level)) write_line(format, arguments);
}

void log_unfiltered(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

}  // namespace uiw::core
