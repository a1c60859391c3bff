// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/stack_depot.h"

#include <cstddef>

namespace uiw::check {
namespace {

constexpr unsigned kNumberBits = 32;

uint64_t hash_of(const Backtrace& stack) {
  uint64_t hash = reinterpret_cast<uintptr_t>(stack.python);
  for (const uintptr_t address : stack.addresses()) {
    hash = (hash ^ address) * 0x9e3779b97f4a7c15;  // an odd number of random bits
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

// Whoever finds a slot free writes the stack first and its number into the slot then: who acquires
// a number sees the stack, which never changes. Of two threads that do so with the same stack one
// wastes its place.
uint32_t StackDepot::number_of(const Backtrace& stack) {
  const uint64_t hash = hash_of(stack);
  const auto high = static_cast<uint32_t>(hash >> kNumberBits);
  uint32_t mine = 0;
  for (size_t at = hash % kSlots;; at = (at + 1) % kSlots) {
    uint64_t seen = slots_[at].load(std::memory_order_acquire);
    if (seen == 0) {
      if (mine == 0) mine = put(stack);
      if (mine == 0) return 0;
      const uint64_t wanted = uint64_t{high} << kNumberBits | mine;
      if (slots_[at].compare_exchange_strong(seen, wanted, std::memory_order_acq_rel)) return mine;
    }
    const auto number = static_cast<uint32_t>(seen);
    if (seen >> kNumberBits == high && this->at(number) == stack) return number;
  }
}

// Its number; 0: no room.
uint32_t StackDepot::put(const Backtrace& stack) {
  if (count_.load(std::memory_order_relaxed) >= kMost) return 0;  // nor does it ever overflow
  const uint32_t place = count_.fetch_add(1, std::memory_order_relaxed);
  if (place >= kMost) return 0;
  stacks_[place] = stack;
  return place + 1;
}

}  // namespace uiw::check
