// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Counts how often each of a few events has happened.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uiw::core {

// `What`: an enum whose last value, kCount, is the number of events. Thread: any.
template <class What>
class Tally {
 public:
  void count(What what) {
    counts_[static_cast<size_t>(what)].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t of(What what) const {
    return counts_[static_cast<size_t>(what)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, static_cast<size_t>(What::kCount)> counts_{};
};

}  // namespace uiw::core
