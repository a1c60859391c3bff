// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The state of a queue pair, which others see beside its counters.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "counters/slot.h"

namespace uiw::counters {

// Used as the std::atomic that it holds; what is published follows it, and is never read back.
// Thread: any.
class PublishedState {
 public:
  // `slot` outlives it.
  PublishedState(Slot& slot, ibv_qp_state first) : slot_(slot), state_(first) { publish(); }

  ibv_qp_state load(std::memory_order order = std::memory_order_seq_cst) const {
    return state_.load(order);
  }
  void store(ibv_qp_state next) {
    state_.store(next, std::memory_order_seq_cst);
    publish();
  }
  ibv_qp_state exchange(ibv_qp_state next) {
    const ibv_qp_state before = state_.exchange(next, std::memory_order_seq_cst);
    publish();
    return before;
  }
  bool compare_exchange_strong(ibv_qp_state& expected, ibv_qp_state next) {
    if (!state_.compare_exchange_strong(expected, next)) return false;
    publish();
    return true;
  }

 private:
  // Of several threads that change it the last one to publish sees the last state.
  void publish() {
    for (ibv_qp_state now = state_.load();;) {
      slot_.state.store(kKnownState + static_cast<uint32_t>(now), std::memory_order_seq_cst);
      const ibv_qp_state then = state_.load();
      if (then == now) return;
      now = then;
    }
  }

  Slot& slot_;
  std::atomic<ibv_qp_state> state_;
};

}  // namespace uiw::counters
