// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Flags that one thread sets and another clears, and that are usually clear. An exchange is a
// locked instruction, which waits until all earlier stores have reached the cache; a load does not.
#pragma once

#include <atomic>

namespace uiw::core {

// Sets the flag. The thread that clears it sees what the caller did before. Thread: any.
inline void put_up(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
}

// Clears the flag. True: it was set, and only this caller has cleared it. Sequentially consistent,
// for threads that write one word and then read another, as do those that set the flag. Thread:
// any.
inline bool take_down(std::atomic<bool>& flag) {
  return flag.load(std::memory_order_seq_cst) && flag.exchange(false, std::memory_order_seq_cst);
}

}  // namespace uiw::core
