// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Counts the users of an object, which cannot be destroyed while it has any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/explain.h"

namespace uiw::verbs {

enum class User : uint8_t {
  kQueuePair,
  kSharedReceiveQueue,
  kCompletionQueue,  // created with this parent domain
  kRegion,
  kWindow,
  kAddressHandle,
  kParentDomain,
  kGroup,  // a multicast group that a queue pair is attached to
};

// The number of users of each kind. Thread: any.
class Users {
 public:
  void add(User user) { count(user).fetch_add(1, std::memory_order_relaxed); }
  void remove(User user) { count(user).fetch_sub(1, std::memory_order_release); }
  bool any() const { return total() > 0; }
  uint32_t total() const;
  uint32_t count_of(User user) const {
    return counts_[static_cast<size_t>(user)].load(std::memory_order_acquire);
  }

 private:
  std::atomic<uint32_t>& count(User user) { return counts_[static_cast<size_t>(user)]; }

  std::array<std::atomic<uint32_t>, static_cast<size_t>(User::kGroup) + 1> counts_ = {};
};

// Returns EBUSY for `call`, which would destroy an object in use. Logs once what uses it.
int refuse_busy(core::Told& told, const char* call, const Users& users);

}  // namespace uiw::verbs
