// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a lock-free reader and a thread that revokes an STag synchronise:
//
//   reader: refs += 1; live == stag ? a hit : refs -= 1, a miss
//   revoke: live = 0; wait until refs == 0
//
// All of these are sequentially consistent: either the reader sees that the STag is revoked, or the
// revoking thread sees the reader's reference and waits for it. What the STag names is written only
// while `live` is 0 and no thread that saw it otherwise holds a reference.
#pragma once

#include <atomic>
#include <cstdint>

namespace uiw::mem {

using RefCount = std::atomic<uint32_t>;
using LiveStag = std::atomic<uint32_t>;  // 0: none

// True: what `stag` names does not change until let_go().
inline bool hold(RefCount& refs, const LiveStag& live, uint32_t stag) {
  refs.fetch_add(1, std::memory_order_seq_cst);
  if (live.load(std::memory_order_seq_cst) == stag) return true;
  refs.fetch_sub(1, std::memory_order_release);
  return false;
}
inline void let_go(RefCount& refs) {
  refs.fetch_sub(1, std::memory_order_release);
}

// From here on hold() returns true for `stag`, and false for an earlier one. Write what it names
// before.
inline void set_live(LiveStag& live, uint32_t stag) {
  live.store(stag, std::memory_order_seq_cst);
}
// After set_live(0): whether a reader may still hold a reference.
inline bool is_held(const RefCount& refs) {
  return refs.load(std::memory_order_seq_cst) != 0;
}

}  // namespace uiw::mem
