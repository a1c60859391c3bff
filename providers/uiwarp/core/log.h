// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Messages to the user of the host program, on standard error or in the file of UIWARP_LOG_FILE.
// Levels: error (something the user must act on), warn, info, debug. UIWARP_LOG sets the highest
// level that is shown (default warn). With info and debug, and in the file, each line has time,
// process and level. No message contains keys that the peer granted, PSNs or private data. Never
// call it with a lock of the data path held. It allocates nothing and writes with one raw write(2),
// so that it neither re-enters the preload hooks nor mixes lines.
#pragma once

#include <cstdarg>

namespace uiw::core {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

bool log_enabled(LogLevel level);
// printf-like; adds the prefix and a newline. Call log_enabled() first if the arguments are
// expensive to compute. Preserves errno. Thread: any.
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));
void log_with(LogLevel level, const char* format, va_list arguments);
// The same without checking the level: for code that reads the settings.
void log_unfiltered(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace uiw::core
