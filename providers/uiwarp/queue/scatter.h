// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Copies bytes into a list of SGEs.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/copy.h"
#include "mem/last_region.h"

namespace uiw::queue {

// Regards the SGEs as one sequence of bytes, of which `length` bytes begin at `offset`. Calls
// take(sge, at, size) for each SGE that they occupy, with their position and size in that SGE,
// until take() returns false. Returns how many bytes were taken.
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

// Copies `data` to that position; place_piece(to, bytes) copies each piece. The caller has checked
// that it fits. The part of an SGE that is written is looked up and checked (region of protection
// domain `pd`, local write) while its region is referenced, so that nothing is ever written into
// memory whose deregistration has returned. False: an SGE is not valid memory; bytes copied before
// it stay.
//
// Adapters, siw and rxe check exactly these bytes, too: they check memory protection when they
// write. So a message may end inside an SGE that is longer than its region, or before one whose key
// is wrong, and its receive completes. A message that reaches such memory is a local protection
// error.
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
