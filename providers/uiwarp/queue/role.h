// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A mutual exclusion that no thread waits for: a thread that finds it free takes it; one that finds
// it taken marks it as wanted and returns, and the holder checks that before it leaves. So work
// that was published before enter() is always seen by a holder.
//
//   publish(work);
//   if (role.enter()) do { drain(); } while (!role.leave());
#pragma once

#include <atomic>
#include <cstdint>

namespace uiw::queue {

class Role {
 public:
  // True: the caller now holds the role. False: the holder will look again.
  bool enter() {
    uint32_t seen = kFree;
    for (;;) {
      if (seen == kWanted) {
        // Still publish through the same word, so that the holder's leave() sees our work.
        if (state_.compare_exchange_weak(seen, kWanted, std::memory_order_acq_rel)) return false;
      } else if (state_.compare_exchange_weak(seen, seen == kFree ? kHeld : kWanted,
                                              std::memory_order_acq_rel)) {
        return seen == kFree;
      }
    }
  }

  // As enter(), for a caller that has nothing to publish: a holder does not look again.
  bool try_enter() {
    uint32_t seen = kFree;
    return state_.load(std::memory_order_relaxed) == kFree &&
           state_.compare_exchange_strong(seen, kHeld, std::memory_order_acq_rel);
  }

  // True: the role is free again. False: it was marked meanwhile; still held, look again.
  bool leave() {
    uint32_t seen = kHeld;
    if (state_.compare_exchange_strong(seen, kFree, std::memory_order_acq_rel)) return true;
    state_.exchange(kHeld, std::memory_order_acq_rel);
    return false;
  }

  // False: what the last holder did can be seen.
  bool held() const { return state_.load(std::memory_order_acquire) != kFree; }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kWanted = 2;
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace uiw::queue
