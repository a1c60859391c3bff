// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Placing octets into a list of SGEs.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/bytes.h"
#include "mem/last_region.h"

namespace uiw::qp {

// Calls take(place, size, region) for the pieces of memory that `length` octets from the position
// `offset` of the concatenated SGEs on occupy, until it says false. Each SGE is looked up and
// checked (region of protection domain `pd`, local write) while `region` holds it, so that nothing
// is ever written into memory whose deregistration has returned. Ends early where an SGE is not
// valid memory. Returns how many octets were taken.
// `find`: looks up an lkey.
template <class Find, class Take>
uint64_t for_each_place(Find&& find, uint32_t pd, const ibv_sge* sges, uint32_t count,
                        uint64_t offset, uint64_t length, Take&& take) {
  uint64_t taken = 0;
  for (uint32_t i = 0; i < count && taken < length; ++i) {
    const ibv_sge& sge = sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint64_t size = std::min<uint64_t>(length - taken, sge.length - offset);
    auto region = find(sge.lkey);
    if (!region ||
        mem::check(*region, pd, sge.addr, sge.length, mem::kLocalWrite) != mem::Fault::kNone)
      break;
    uint8_t* const place = region->memory + (sge.addr - region->start) + offset;
    if (!take(place, size, std::move(region))) break;
    taken += size;
    offset = 0;
  }
  return taken;
}

// Copies `data` there. The caller has checked that it fits. False: an SGE is not valid memory; what
// was copied before it stays.
inline bool scatter(mem::LastRegion& regions, const mem::Table& memory, uint32_t pd,
                    const ibv_sge* sges, uint32_t count, uint64_t offset, core::Bytes data) {
  if (data.empty()) return true;
  if (count > 0 && offset + data.size() <= sges[0].length) [[likely]] {
    const mem::Region* region = regions.find_local(memory, sges[0].lkey);
    if (!region || mem::check(*region, pd, sges[0].addr, sges[0].length, mem::kLocalWrite) !=
                       mem::Fault::kNone)
      return false;
    std::memcpy(region->memory + (sges[0].addr - region->start) + offset, data.data(), data.size());
    return true;
  }
  const uint8_t* from = data.data();
  const auto copy = [&](uint8_t* place, uint64_t size, const mem::Region*) {
    std::memcpy(place, from, size);
    from += size;
    return true;
  };
  const auto find = [&](uint32_t lkey) { return regions.find_local(memory, lkey); };
  return for_each_place(find, pd, sges, count, offset, data.size(), copy) == data.size();
}

}  // namespace uiw::qp
