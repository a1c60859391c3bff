// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Objects that several owners find by a number, and that are freed with the last owner. A forked
// child finds none of its parent's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "core/per_process.h"

namespace uiw::core {

template <class T>
class SharedByNumber {
 public:
  // The object of `number`, created if there is none. For 0 always a new one. Null: out of memory.
  // Thread: any.
  std::shared_ptr<T> get(uint64_t number) {
    if (number == 0) return make();
    All* const all = all_.get();
    if (!all) return nullptr;
    const std::lock_guard lock(all->mutex);
    std::erase_if(all->by_number, [](const auto& each) { return each.second.expired(); });
    if (const auto found = all->by_number.find(number); found != all->by_number.end())
      if (std::shared_ptr<T> object = found->second.lock()) return object;
    std::shared_ptr<T> made = make();
    if (made) all->by_number[number] = made;
    return made;
  }

 private:
  static std::shared_ptr<T> make() { return std::shared_ptr<T>(new (std::nothrow) T); }

  struct All {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::weak_ptr<T>> by_number;  // under mutex
  };
  PerProcess<All> all_;
};

}  // namespace uiw::core
