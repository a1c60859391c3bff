// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Placing bytes into a list of SGEs.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/copy.h"
#include "mem/last_region.h"

namespace uiw::queue {

// Calls take(sge, at, size) for the SGEs that `length` bytes from the position `offset` of all of
// them on occupy, `size` bytes from the one at `at` on, until it says false. Returns how many
// bytes were taken.
template <class Take>
uint64_t for_each_sge(const ibv_sge* sges, uint32_t count, uint64_t offset, uint64_t length,
                      Take&& take) {
  uint64_t taken = 0;
  for (uint32_t i = 0; i < count && taken < length; ++i) {
    const ibv_sge& sge = sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint64_t size = std::min<uint64_t>(length - taken, sge.length - offset);
    if (!take(sge, offset, size)) break;
    taken += size;
    offset = 0;
  }
  return taken;
}

// Copies `data` there, piece by piece of memory by place_piece(to, bytes). The caller has checked
// that it fits. What of an SGE is written is looked up and checked (region of protection domain
// `pd`, local write) while its region is held, so that nothing is ever written into memory whose
// deregistration has returned. False: it is not valid memory; what was copied before it stays.
//
// Adapters, siw and rxe check the same bytes and no more: their memory protection is asked when
// they write. So a message may end inside an SGE that is longer than its region, or before one
// whose key is wrong: its receive completes. One that reaches them is a local protection error.
template <class Place>
bool scatter_by(Place&& place_piece, mem::LastRegion& regions, const mem::Table& memory,
                uint32_t pd, const ibv_sge* sges, uint32_t count, uint64_t offset,
                core::Bytes data) {
  const uint8_t* from = data.data();
  const auto copy = [&](const ibv_sge& sge, uint64_t at, uint64_t size) {
    uint8_t* const place =
        regions.locate(memory, sge.lkey, pd, sge.addr + at, size, mem::kLocalWrite);
    if (!place) return false;
    place_piece(place, core::Bytes(from, size));
    from += size;
    return true;
  };
  return for_each_sge(sges, count, offset, data.size(), copy) == data.size();
}

inline bool scatter(mem::LastRegion& regions, const mem::Table& memory, uint32_t pd,
                    const ibv_sge* sges, uint32_t count, uint64_t offset, core::Bytes data) {
  return scatter_by(
      [](uint8_t* to, core::Bytes piece) { core::copy(to, piece.data(), piece.size()); }, regions,
      memory, pd, sges, count, offset, data);
}

}  // namespace uiw::queue
