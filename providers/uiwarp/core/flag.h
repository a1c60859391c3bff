// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Flags that are put up by one thread and taken down by another, and that are mostly down already.
// An exchange is a locked instruction, which waits until all that was stored before it has reached
// the cache; a look at the flag is not.
#pragma once

#include <atomic>

namespace uiw::core {

// Whoever takes it down sees what the caller did before. Thread: any.
inline void put_up(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
}

// True: it was up, and the caller alone took it down. Sequentially consistent, for those who write
// one word and then look at another one, as do those who raise the flag. Thread: any.
inline bool take_down(std::atomic<bool>& flag) {
  return flag.load(std::memory_order_seq_cst) && flag.exchange(false, std::memory_order_seq_cst);
}

}  // namespace uiw::core
