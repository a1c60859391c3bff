// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/assert.h"

#include <cstdlib>

#include "core/log.h"

namespace uiw::core {

void assert_failed(const char* expression, const char* file, int line) {
  log(LogLevel::kError,
      "internal error: '%s' does not hold at %s:%d; this is a bug in uiwarp, please report it",
      expression, file, line);
  std::abort();
}

}  // namespace uiw::core
