// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many descriptors unauthenticated peers may make this process hold: at most half of those that
// it may have, at all its listeners together, those of queue pair numbers included. The other half
// is the program's. Each kind of thing that such a peer can begin has a share of its own, so that a
// flood of one does not block another. doc/waits.md lists them.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace uiw::core {

struct Share {
  uint32_t sixteenths;  // of the descriptors
  uint32_t most;
};
// Accepted connections of which the application has not fetched a CONNECT_REQUEST; 22 MiB.
inline constexpr Share kAtListeners{5, 8192};
inline constexpr Share kNotFetched{4, 8192};   // of these: with a CONNECT_REQUEST that is queued
inline constexpr Share kNotTold{1, 8192};      // the others: so many in any case
inline constexpr Share kRefused{1, 1024};      // by a Reply or Terminate
inline constexpr Share kPendingPeers{2, 256};  // at the ports of queue pairs

static_assert(kNotFetched.sixteenths + kNotTold.sixteenths <= kAtListeners.sixteenths);
static_assert(kAtListeners.sixteenths + kRefused.sixteenths + kPendingPeers.sixteenths <= 8);

// So many now, at least 1. One system call. Thread: any.
inline uint32_t number_of_descriptors(Share share) {
  constexpr rlim_t kUsual = 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = kUsual;
  return static_cast<uint32_t>(
      std::clamp<rlim_t>(limit.rlim_cur / 16 * share.sixteenths, 1, share.most));
}

}  // namespace uiw::core
