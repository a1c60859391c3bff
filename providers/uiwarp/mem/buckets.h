// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Maps random indices to slots in one step, no matter how many were added and removed. A bucket
// leads to at most one slot, and an index is chosen so that its bucket is free. Indices that differ
// in their lower bits also differ in one bit more. So the array can be doubled, and every index
// still has a bucket of its own. It can be halved if no two indices then need the same bucket.
//
// Readers take no lock. An array that was replaced by one of another size stays readable and is all
// zeros. A reader that misses in it sees that `resizes()` has changed, and looks again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/pages.h"
#include "mem/zeroed_pages.h"

namespace uiw::mem {

// `index_of(slot)`: the index of a slot that is in a bucket. Thread: one at a time, except for
// find() and resizes().
template <typename Slot, uint32_t (*index_of)(const Slot&)>
class Buckets {
 public:
  static constexpr unsigned kMinBits = 6, kMaxBits = 22;  // log2 of the number of buckets

  Buckets() {
    for (unsigned bits = kMinBits; bits <= kMaxBits; ++bits) arrays_[bits].mask = (1u << bits) - 1;
    arrays_[kMinBits].at = fewest_;
  }

  // The slot in the bucket of `index`, which may be that of another index. Thread: any.
  Slot* find(uint32_t index) const {
    const Array& array = *current_.load(std::memory_order_acquire);
    return array.at[index & array.mask].load(std::memory_order_acquire);
  }
  // How often the number of buckets has changed. If it is the same before and after find(), the
  // result was right. Thread: any.
  uint32_t resizes() const { return resizes_.load(std::memory_order_acquire); }

  // Only if find() returns null for its index.
  void insert(Slot* slot) { bucket(index_of(*slot)).store(slot, std::memory_order_release); }
  void erase(const Slot& slot) { bucket(index_of(slot)).store(nullptr, std::memory_order_release); }

  size_t size() const { return size_t{1} << bits_; }
  size_t footprint() const { return size() * sizeof(Bucket); }

  // False: out of memory, or kMaxBits are reached.
  bool grow() { return bits_ < kMaxBits && resize(bits_ + 1); }
  // False: two slots would need the same bucket, kMinBits is reached, or out of memory.
  bool shrink() { return bits_ > kMinBits && can_be_halved() && resize(bits_ - 1); }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    const Array& array = arrays_[bits_];
    for (size_t i = 0; i < size(); ++i) {
      if (Slot* const slot = array.at[i].load(std::memory_order_relaxed)) visit(slot);
    }
  }

 private:
  using Bucket = std::atomic<Slot*>;
  struct Array {
    uint32_t mask = 0;
    Bucket* at = nullptr;
    ZeroedPages memory;
  };

  Bucket& bucket(uint32_t index) {
    const Array& array = arrays_[bits_];
    return array.at[index & array.mask];
  }

  bool can_be_halved() const {
    const Bucket* const at = arrays_[bits_].at;
    const size_t half = size() / 2;
    for (size_t i = 0; i < half; ++i) {
      if (at[i].load(std::memory_order_relaxed) && at[i + half].load(std::memory_order_relaxed))
        return false;
    }
    return true;
  }

  bool resize(unsigned bits) {
    Array& wanted = arrays_[bits];
    if (!wanted.at) {
      const size_t size = (size_t{1} << bits) * sizeof(Bucket);
      if (!wanted.memory.map(core::whole_pages(size))) return false;
      wanted.at = reinterpret_cast<Bucket*>(wanted.memory.start());
    }
    for_each([&](Slot* slot) {
      wanted.at[index_of(*slot) & wanted.mask].store(slot, std::memory_order_relaxed);
    });
    Array& outgrown = arrays_[bits_];
    bits_ = bits;
    current_.store(&wanted, std::memory_order_release);
    resizes_.fetch_add(1, std::memory_order_release);
    // A thread that reads a null from here on will then read the new count of resizes: the system
    // call returns only when no processor can access the old page any more.
    if (!outgrown.memory || !outgrown.memory.give_back(0, outgrown.memory.size())) {
      for (size_t i = 0; i <= outgrown.mask; ++i)
        outgrown.at[i].store(nullptr, std::memory_order_release);
    }
    return true;
  }

  Bucket fewest_[size_t{1} << kMinBits] = {};
  Array arrays_[kMaxBits + 1];  // one per size, mapped when first used
  unsigned bits_ = kMinBits;
  std::atomic<const Array*> current_{&arrays_[kMinBits]};
  std::atomic<uint32_t> resizes_{0};
};

}  // namespace uiw::mem
