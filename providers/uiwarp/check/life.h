// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Whether an object is still there, and how many calls are in it. Pure.
#pragma once

#include <atomic>
#include <cstdint>

namespace uiw::check {

class Life {
 public:
  // A call begins, which leave() ends. False: the object is not there any more, and nothing began.
  bool enter() {
    if (!(state_.fetch_add(1, std::memory_order_acquire) & kOver)) return true;
    leave();
    return false;
  }
  void leave() { state_.fetch_sub(1, std::memory_order_release); }
  // From here on nothing begins.
  void end() { state_.fetch_or(kOver, std::memory_order_relaxed); }
  // It could not be destroyed.
  void go_on() { state_.fetch_and(~kOver, std::memory_order_relaxed); }
  // Calls that have begun and not ended.
  uint32_t within() const { return state_.load(std::memory_order_acquire) & ~kOver; }

 private:
  static constexpr uint32_t kOver = 1u << 31;
  std::atomic<uint32_t> state_{0};
};

}  // namespace uiw::check
