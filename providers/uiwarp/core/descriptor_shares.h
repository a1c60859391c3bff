// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many descriptors unauthenticated peers may make this process hold: at most half of its limit,
// over all its listeners, including those of queue pair numbers. The other half is the program's.
// Each kind of object that such a peer can create has a share of its own, so that a flood of one
// kind does not block another. doc/waits.md lists them.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace uiw::core {

struct Share {
  uint32_t sixteenths;  // of the limit of descriptors
  uint32_t most;
};
// Accepted connections whose CONNECT_REQUEST the application has not fetched; 22 MiB.
inline constexpr Share kAtListeners{5, 8192};
inline constexpr Share kNotFetched{4, 8192};   // of these: with a queued CONNECT_REQUEST
inline constexpr Share kNotTold{1, 8192};      // the others: this many in any case
inline constexpr Share kRefused{1, 1024};      // refused by a Reply or Terminate
inline constexpr Share kPendingPeers{2, 256};  // at the ports of queue pairs

static_assert(kNotFetched.sixteenths + kNotTold.sixteenths <= kAtListeners.sixteenths);
static_assert(kAtListeners.sixteenths + kRefused.sixteenths + kPendingPeers.sixteenths <= 8);

// The share as a number, by the current limit; at least 1. One system call. Thread: any.
inline uint32_t number_of_descriptors(Share share) {
  constexpr rlim_t kUsual = 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = kUsual;
  return static_cast<uint32_t>(
      std::clamp<rlim_t>(limit.rlim_cur / 16 * share.sixteenths, 1, share.most));
}

}  // namespace uiw::core
