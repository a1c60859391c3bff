// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Messages to the user of the host program, on standard error.
// Levels: error (something the user must act on), warn, info, debug. UIWARP_LOG sets the highest
// that is shown (default warn). Never called with a lock held on the data path; allocates nothing;
// writes with one raw write(2) so that it neither re-enters the preload hooks nor interleaves.
#pragma once

#include <cstdarg>

namespace uiw::core {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

bool log_enabled(LogLevel level);
// printf-like; adds "uiwarp: " in front and a newline at the end.
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));
void log_with(LogLevel level, const char* format, va_list arguments);
// The same without asking the settings: for the code that reads the settings.
void log_unfiltered(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace uiw::core
