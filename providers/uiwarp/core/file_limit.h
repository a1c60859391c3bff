// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// RLIMIT_FSIZE: a write beyond it raises SIGXFSZ, which ends the program. Our files must not cause
// that.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace uiw::core {

// Whether a file may be written up to `end` bytes from its beginning. Thread: any.
inline bool may_write_up_to(uint64_t end) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && end <= limit.rlim_cur;
}

}  // namespace uiw::core
