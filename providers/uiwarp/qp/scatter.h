// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Placing octets into a list of SGEs.
#pragma once

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/bytes.h"
#include "mem/table.h"

namespace uiw::qp {

// Copies `data` to the position `offset` of the concatenated SGEs. Each SGE is looked up and
// checked (region of protection domain `pd`, local write) while a reference holds it, so that
// nothing is ever written into memory whose deregistration has returned. The caller has checked
// that it fits. False: an SGE is not valid memory; what was copied before it stays.
inline bool scatter(const mem::Table& memory, uint32_t pd, const ibv_sge* sges, uint32_t count,
                    uint64_t offset, core::Bytes data) {
  for (uint32_t i = 0; i < count && !data.empty(); ++i) {
    const ibv_sge& sge = sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const size_t size = std::min<size_t>(data.size(), sge.length - offset);
    mem::RegionRef region = memory.find(sge.lkey);
    if (!region ||
        mem::check(*region, pd, sge.addr, sge.length, mem::kLocalWrite) != mem::Fault::kNone)
      return false;
    std::memcpy(region->memory + (sge.addr - region->start) + offset, data.data(), size);
    data = data.subspan(size);
    offset = 0;
  }
  return data.empty();
}

// The same places as pieces of memory, `length` octets or as much as there is room for in `pieces`,
// with references that hold them. Returns how many pieces; fewer, perhaps none, where an SGE is not
// valid memory.
template <size_t most>
size_t collect(const mem::Table& memory, uint32_t pd, const ibv_sge* sges, uint32_t count,
               uint64_t offset, uint64_t length, std::array<iovec, most>& pieces,
               std::array<mem::RegionRef, most>& regions) {
  size_t found = 0;
  for (uint32_t i = 0; i < count && length > 0 && found < most; ++i) {
    const ibv_sge& sge = sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint64_t size = std::min<uint64_t>(length, sge.length - offset);
    mem::RegionRef region = memory.find(sge.lkey);
    if (!region ||
        mem::check(*region, pd, sge.addr, sge.length, mem::kLocalWrite) != mem::Fault::kNone)
      break;
    pieces[found] = {region->memory + (sge.addr - region->start) + offset, size};
    regions[found++] = std::move(region);
    length -= size;
    offset = 0;
  }
  return found;
}

}  // namespace uiw::qp
