// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many descriptors strangers may make this process hold. Whatever they do, some are left for
// the program: each kind of thing that a stranger can begin has a share, and all shares together
// are less than there are. doc/waits.md lists them.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace uiw::core {

// The `part`-th part of what the process may have open now, at least 16 and at most `most`. One
// system call. Thread: any.
inline uint32_t share_of_descriptors(uint32_t part, uint32_t most) {
  constexpr rlim_t kLeast = 16, kUsual = 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = kUsual;
  return static_cast<uint32_t>(std::clamp<rlim_t>(limit.rlim_cur / part, kLeast, most));
}

}  // namespace uiw::core
