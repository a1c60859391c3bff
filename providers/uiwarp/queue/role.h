// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The right to act that never waits: whoever finds it free takes it, whoever finds it taken leaves
// a knock and goes away, and the holder looks again before it leaves. So work published before
// enter() is always seen by somebody, and no thread ever waits for another one's system call.
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
      if (seen == kKnocked) {
        // Still publish through the same word, so that the holder's leave() sees our work.
        if (state_.compare_exchange_weak(seen, kKnocked, std::memory_order_acq_rel)) return false;
      } else if (state_.compare_exchange_weak(seen, seen == kFree ? kHeld : kKnocked,
                                              std::memory_order_acq_rel)) {
        return seen == kFree;
      }
    }
  }

  // As enter(), for one who has nothing to publish: a holder is not told.
  bool try_enter() {
    uint32_t seen = kFree;
    return state_.load(std::memory_order_relaxed) == kFree &&
           state_.compare_exchange_strong(seen, kHeld, std::memory_order_acq_rel);
  }

  // True: the role is free again. False: somebody knocked; still held, look again.
  bool leave() {
    uint32_t seen = kHeld;
    if (state_.compare_exchange_strong(seen, kFree, std::memory_order_acq_rel)) return true;
    state_.exchange(kHeld, std::memory_order_acq_rel);
    return false;
  }

  // False: what the last holder did can be seen.
  bool held() const { return state_.load(std::memory_order_acquire) != kFree; }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kKnocked = 2;
  std::atomic<uint32_t> state_{kFree};
};

}  // namespace uiw::queue
