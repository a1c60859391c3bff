// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// State of the process that a fork() must not share: the child gets a new one and never touches the
// parent's, whose locks may have been held and whose threads do not run there.
#pragma once

#include <unistd.h>

#include <atomic>
#include <new>

namespace uiw::core {

template <class T>
class PerProcess {
 public:
  // Made when first asked for; lives as long as the process. Null when out of memory. Thread: any.
  T* get() {
    const pid_t pid = getpid();
    Cell* current = current_.load(std::memory_order_acquire);
    while (!current || current->pid != pid) {
      auto* mine = new (std::nothrow) Cell;
      if (!mine) return nullptr;
      mine->pid = pid;
      if (current_.compare_exchange_strong(current, mine, std::memory_order_acq_rel))
        return &mine->value;
      delete mine;
    }
    return &current->value;
  }

 private:
  struct Cell {
    pid_t pid = 0;
    T value;
  };
  std::atomic<Cell*> current_{nullptr};
};

}  // namespace uiw::core
