// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The memory regions of a device that is open, and those that were until not long ago: what an SGE
// means, and why one means nothing. Pure.
//
// Programs get lkeys that are not their rkeys, so that one in the place of the other is noticed.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/finding.h"

namespace uiw::check {

struct Region : std::enable_shared_from_this<Region> {
  uint32_t number = 0;       // counts registrations
  uint32_t lkey = 0;         // the program's
  uint32_t stag = 0;         // the stack's lkey, and rkey for all
  const void* pd = nullptr;  // of a parent domain: what it was made of
  uint8_t* memory = nullptr;
  uint64_t start = 0;  // as SGEs name the first byte
  uint64_t length = 0;
  uint32_t access = 0;
  Stack registered, deregistered;

  bool holds(const ibv_sge& sge) const {
    return sge.addr >= start && sge.length <= length && sge.addr - start <= length - sge.length;
  }
  uint8_t* at(const ibv_sge& sge) const { return memory + (sge.addr - start); }
  std::string name() const;
};

// Why an SGE is refused.
struct Verdict {
  Kind kind = Kind::kLocalProtection;
  std::string what;  // empty: nothing is wrong with it
  std::vector<Place> places;
};

// Thread: one at a time.
class Regions {
 public:
  // Chooses its lkey. It stays where it is until it is removed, and no shared_ptr is left.
  Region& add(Region region);
  // The region has been registered anew: chooses another lkey if its stag is another one.
  void change(Region& region, Region changed);
  void remove(Region& region);

  const Region* find(uint32_t lkey) const;
  // One that had it and was deregistered, unless another one has it now.
  const Region* find_gone(uint32_t lkey) const;
  // Null when there is none.
  std::shared_ptr<Region> find_by_stag(uint32_t stag) const;
  // What the stack knows an lkey by; 0, which is no key, for one that there is not.
  uint32_t stag_of(uint32_t lkey) const;

  // What the peer used as an rkey, and was refused, is an lkey of the memory that it asked for:
  // that region.
  const Region* given_lkey_of(uint32_t rkey, uint64_t address, uint64_t length) const;

  // `pd` as in Region; `written`: the SGE is a sink.
  Verdict judge(const ibv_sge& sge, const void* pd, bool written) const;

 private:
  static constexpr size_t kRemembered = 64;  // of those that were deregistered

  uint32_t choose_lkey(uint32_t stag) const;
  void forget_stag(const Region& region);
  const Region* nearest(const ibv_sge& sge) const;

  std::unordered_map<uint32_t, std::shared_ptr<Region>> by_lkey_;
  std::unordered_map<uint32_t, Region*> by_stag_;
  std::deque<Region> gone_;
  uint32_t registrations_ = 0;
};

}  // namespace uiw::check
