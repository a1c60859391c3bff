// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Mutual exclusion without waiting. A thread that finds the role free takes it. A thread that finds
// it taken marks it as wanted and returns; the holder checks that mark before it leaves. So the
// holder always sees work that was published before enter().
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
        // Write the word all the same, so that the holder's leave() sees our work.
        if (state_.compare_exchange_weak(seen, kWanted, std::memory_order_acq_rel)) return false;
      } else if (state_.compare_exchange_weak(seen, seen == kFree ? kHeld : kWanted,
                                              std::memory_order_acq_rel)) {
        return seen == kFree;
      }
    }
  }

  // Like enter(), for a caller that has published nothing: does not make the holder look again.
  bool try_enter() {
    uint32_t seen = kFree;
    return state_.load(std::memory_order_relaxed) == kFree &&
           state_.compare_exchange_strong(seen, kHeld, std::memory_order_acq_rel);
  }

  // True: the role is free. False: it was marked meanwhile; the caller still holds it and must look
  // again.
  bool leave() {
    uint32_t seen = kHeld;
    if (state_.compare_exchange_strong(seen, kFree, std::memory_order_acq_rel)) return true;
    state_.exchange(kHeld, std::memory_order_acq_rel);
    return false;
  }

  // False: what the last holder did is visible to the caller.
  bool held() const { return state_.load(std::memory_order_acquire) != kFree; }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kWanted = 2;
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace uiw::queue
