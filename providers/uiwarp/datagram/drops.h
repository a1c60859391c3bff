// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Why datagrams did not come to a receive, or not leave. Nobody is told: the service is unreliable.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uiw::datagram {

enum class Drop : uint8_t {
  kMalformed,     // no header of ours, or larger than the MTU
  kNoQueuePair,   // of that number at this port
  kNotReceiving,  // the queue pair is in a state that does not receive
  kQkey,          // another one than the queue pair's
  kNoReceive,     // none is posted
  kNotSent,       // the kernel did not take it
  kCount,
};

// Thread: any.
class Drops {
 public:
  void count(Drop why) {
    counts_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t of(Drop why) const {
    return counts_[static_cast<size_t>(why)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Drop::kCount)> counts_{};
};

// Of this process, since it began.
Drops& drops();

}  // namespace uiw::datagram
