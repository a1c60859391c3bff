// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// State of a process that a fork() must not share. The child gets a new object and never touches
// the parent's, whose locks may have been held and whose threads do not run there.
#pragma once

#include <atomic>
#include <new>

#include "core/generation.h"

namespace uiw::core {

template <class T>
class PerProcess {
 public:
  // The object of this process, created at the first call; lives as long as the process. Null when
  // out of memory. Thread: any.
  T* get() {
    const unsigned now = generation();
    Cell* current = current_.load(std::memory_order_acquire);
    while (!current || current->generation != now) {
      auto* mine = new (std::nothrow) Cell;
      if (!mine) return nullptr;
      mine->generation = now;
      if (current_.compare_exchange_strong(current, mine, std::memory_order_acq_rel))
        return &mine->value;
      delete mine;
    }
    return &current->value;
  }
  // Null until get() was called in this process. Allocates nothing. Thread: any.
  T* made() const {
    Cell* const current = current_.load(std::memory_order_acquire);
    return current && current->generation == generation() ? &current->value : nullptr;
  }

 private:
  struct Cell {
    unsigned generation = 0;
    T value;
  };
  std::atomic<Cell*> current_{nullptr};
};

}  // namespace uiw::core
