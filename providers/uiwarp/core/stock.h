// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Keeps objects that are not in use for the next user, at most as many as are in use. So no matter
// how many are in use, taking and giving back among them allocates nothing; and when none is in use
// any more, all but a few have been freed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "core/spinlock.h"

namespace uiw::core {

// `T` has a member `T* next_in_stock`, which the stock uses while it keeps the object. The stock is
// never destroyed. Thread: any.
template <class T>
class Stock {
 public:
  static constexpr size_t kFew = 16;  // enough for the busiest connections of most programs

  // Returns an object that was kept, else the result of `make()`, which may be null.
  template <class Make>
  T* take(Make&& make) {
    {
      std::lock_guard guard(lock_);
      ++used_;
      if (T* const kept = pop()) return kept;
    }
    T* const made = make();
    if (!made) {
      std::lock_guard guard(lock_);
      --used_;
    }
    return made;
  }

  // Takes an object back. Calls `free(object)` for surplus ones.
  template <class Free>
  void give(T* one, Free&& free) {
    T* surplus[2] = {};
    {
      std::lock_guard guard(lock_);
      one->next_in_stock = first_;
      first_ = one;
      ++kept_;
      --used_;
      for (T*& each : surplus)
        if (kept_ > std::max(used_, kFew)) each = pop();
    }
    for (T* const each : surplus)
      if (each) free(each);
  }

  size_t kept() const {
    std::lock_guard guard(lock_);
    return kept_;
  }

 private:
  T* pop() {
    T* const one = first_;
    if (!one) return nullptr;
    first_ = one->next_in_stock;
    --kept_;
    return one;
  }

  mutable Spinlock lock_;
  T* first_ = nullptr;
  size_t kept_ = 0, used_ = 0;
};

}  // namespace uiw::core
