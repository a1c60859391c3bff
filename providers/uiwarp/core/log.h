// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Messages to the user of the host program, on standard error or in the file of UIWARP_LOG_FILE.
// Levels: error (something the user must act on), warn, info, debug. UIWARP_LOG sets the highest
// that is shown (default warn); with info and debug, and in the file, each line has time, process
// and level. No message has keys that the peer granted, PSNs or private data. Never called with a
// lock held on the data path; allocates nothing; writes with one raw write(2) so that it neither
// re-enters the preload hooks nor interleaves.
#pragma once

#include <cstdarg>

namespace uiw::core {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

bool log_enabled(LogLevel level);
// printf-like; adds what stands in front and a newline at the end. Arguments that take work to make
// want log_enabled() asked first. Errno stays. Thread: any.
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));
void log_with(LogLevel level, const char* format, va_list arguments);
// The same without asking the settings: for the code that reads the settings.
void log_unfiltered(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace uiw::core
