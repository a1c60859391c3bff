// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/regions.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "check/text.h"

namespace uiw::check {
namespace {

// Any other number would do.
constexpr uint32_t kOther = 0x5a5a5a5a;

uint64_t distance(const Region& region, const ibv_sge& sge) {
  if (sge.addr < region.start) return region.start - sge.addr;
  const uint64_t end = region.start + region.length;
  return sge.addr >= end ? sge.addr - end : 0;
}

std::string where(const ibv_sge& sge) {
  return text("the SGE [0x%" PRIx64 ", 0x%" PRIx64 ") of %u bytes with lkey 0x%x", sge.addr,
              sge.addr + sge.length, sge.length, sge.lkey);
}

ibv_sge with_swapped_address(ibv_sge sge) {
  sge.addr = __builtin_bswap64(sge.addr);
  return sge;
}

std::string outside(const Region& region, const ibv_sge& sge) {
  const uint64_t end = region.start + region.length, sge_end = sge.addr + sge.length;
  if (sge.addr < region.start)
    return text("begins %" PRIu64 " bytes before", region.start - sge.addr);
  if (sge.addr >= end) return text("begins %" PRIu64 " bytes behind the end of", sge.addr - end);
  return text("ends %" PRIu64 " bytes behind the end of", sge_end - end);
}

}  // namespace

std::string Region::name() const {
  return text("memory region %u, [0x%" PRIx64 ", 0x%" PRIx64 "), lkey 0x%x, rkey 0x%x", number,
              start, start + length, lkey, stag);
}

uint32_t Regions::choose_lkey(uint32_t stag) const {
  uint32_t lkey = stag ^ kOther;
  while (lkey == 0 || by_lkey_.contains(lkey) || by_stag_.contains(lkey)) ++lkey;
  return lkey;
}

Region& Regions::add(Region region) {
  region.number = ++registrations_;
  region.lkey = choose_lkey(region.stag);
  auto kept = std::make_shared<Region>(std::move(region));
  Region& added = *kept;
  by_stag_[added.stag] = &added;
  by_lkey_[added.lkey] = std::move(kept);
  return added;
}

void Regions::change(Region& region, Region changed) {
  auto kept = std::move(by_lkey_[region.lkey]);
  by_lkey_.erase(region.lkey);
  forget_stag(region);
  changed.number = region.number;
  changed.lkey = changed.stag == region.stag ? region.lkey : choose_lkey(changed.stag);
  region = std::move(changed);
  by_stag_[region.stag] = &region;
  by_lkey_[region.lkey] = std::move(kept);
}

void Regions::remove(Region& region) {
  gone_.push_front(region);
  if (gone_.size() > kRemembered) gone_.pop_back();
  forget_stag(region);
  by_lkey_.erase(region.lkey);
}

// The stack frees a stag before this is told: another thread's region may have it by now.
void Regions::forget_stag(const Region& region) {
  const auto found = by_stag_.find(region.stag);
  if (found != by_stag_.end() && found->second == &region) by_stag_.erase(found);
}

const Region* Regions::find(uint32_t lkey) const {
  const auto found = by_lkey_.find(lkey);
  return found == by_lkey_.end() ? nullptr : found->second.get();
}

const Region* Regions::find_gone(uint32_t lkey) const {
  const auto gone = std::ranges::find(gone_, lkey, &Region::lkey);
  return gone == gone_.end() || find(lkey) ? nullptr : &*gone;
}

std::shared_ptr<Region> Regions::find_by_stag(uint32_t stag) const {
  const auto found = by_stag_.find(stag);
  return found == by_stag_.end() ? nullptr : found->second->shared_from_this();
}

uint32_t Regions::stag_of(uint32_t lkey) const {
  const Region* const found = find(lkey);
  return found ? found->stag : 0;
}

const Region* Regions::nearest(const ibv_sge& sge) const {
  const Region* best = nullptr;
  for (const auto& [lkey, region] : by_lkey_)
    if (!best || distance(*region, sge) < distance(*best, sge)) best = region.get();
  return best;
}

const Region* Regions::given_lkey_of(uint32_t rkey, uint64_t address, uint64_t length) const {
  const Region* const region = by_stag_.contains(rkey) ? nullptr : find(rkey);
  if (!region || address < region->start || length > region->length) return nullptr;
  return address - region->start <= region->length - length ? region : nullptr;
}

Verdict Regions::judge(const ibv_sge& sge, const void* pd, bool written) const {
  Verdict verdict;
  const auto about = [&](const Region& region) {
    verdict.places.push_back({"memory registered", region.registered});
  };
  if (const Region* const region = find(sge.lkey)) {
    if (region->pd != pd)
      verdict.what = where(sge) + " names " + region->name() + ", of another protection domain";
    else if (!region->holds(sge) && region->holds(with_swapped_address(sge)))
      verdict.what =
          where(sge) + text(
                           " is outside of %s, but with its bytes in the other order its address, "
                           "0x%" PRIx64
                           ", lies within: give it in one byte order at both ends "
                           "(htobe64, be64toh)",
                           region->name().c_str(), with_swapped_address(sge).addr);
    else if (!region->holds(sge))
      verdict.what = where(sge) + " " + outside(*region, sge) + " " + region->name();
    else if (written && !(region->access & IBV_ACCESS_LOCAL_WRITE))
      verdict.what = where(sge) + " is to be written to, but " + region->name() +
                     " was registered without IBV_ACCESS_LOCAL_WRITE";
    if (!verdict.what.empty()) about(*region);
    return verdict;
  }
  const auto swapped = by_stag_.find(sge.lkey);
  if (swapped != by_stag_.end()) {
    verdict.kind = Kind::kKeySwapped;
    verdict.what = where(sge) + " has the rkey instead of the lkey of " + swapped->second->name();
    about(*swapped->second);
    return verdict;
  }
  if (const Region* const gone = find_gone(sge.lkey)) {
    verdict.what = where(sge) + " names " + gone->name() + ", which is deregistered";
    about(*gone);
    verdict.places.push_back({"memory deregistered", gone->deregistered});
    return verdict;
  }
  if (const Region* const turned = find(__builtin_bswap32(sge.lkey))) {
    verdict.what = where(sge) +
                   " has a key that no memory region has, but with its bytes in the other order it "
                   "is the lkey of " +
                   turned->name() + ": give it in one byte order at both ends (htonl, ntohl)";
    about(*turned);
    return verdict;
  }
  verdict.what = where(sge) + " has a key that no memory region has";
  if (const Region* const region = nearest(sge)) {
    verdict.what += region->holds(sge) ? "; its memory is that of " : "; the nearest one is ";
    verdict.what += region->name();
    about(*region);
  }
  return verdict;
}

}  // namespace uiw::check
