// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Taking down a flag that is mostly down already. An exchange is a locked instruction, which waits
// until all that was stored before it has reached the cache; a look at the flag is not.
#pragma once

#include <atomic>

namespace uiw::core {

// True: it was up, and the caller alone took it down. Who raises it makes sure in another way that
// somebody looks afterwards (queue::Role), as this may just have looked. Thread: any.
inline bool take_down(std::atomic<bool>& flag) {
  return flag.load(std::memory_order_relaxed) && flag.exchange(false, std::memory_order_acq_rel);
}

}  // namespace uiw::core
