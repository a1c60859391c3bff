// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many messages unreliable service (core/service.h) has lost, and why. Nobody else is told, so
// whoever wants to know looks here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace uiw::qp {

enum class Loss : uint8_t {
  kNoReceive,  // came, and no receive was posted
  kTooLong,    // came, and was longer than its receive
  kNoAccess,   // a Write that came, to what the peer may not write to
  kNoPeer,     // was posted, and there was no connection to send it on
};

class Losses {
 public:
  // Thread: the sender for kNoPeer, the receiver for all else.
  void count(Loss why) {
    std::atomic<uint64_t>& counter = counters_[static_cast<size_t>(why)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Thread: any.
  uint64_t of(Loss why) const {
    return counters_[static_cast<size_t>(why)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, 4> counters_{};
};

}  // namespace uiw::qp
