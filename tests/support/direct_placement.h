// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Receiving as session/ does: payload directly into place.
#pragma once

#include <algorithm>
#include <cstring>

#include "qp/rx.h"

namespace uiw::test {

// One call that receives `octets`: directly into place what Rx has planned, the rest is fed to it.
// `directly`: how many were received into place.
inline qp::RxStatus receive_directly(qp::Rx& rx, core::Bytes octets, size_t* directly = nullptr) {
  qp::DirectPlacement placement;
  size_t placed = 0;
  const bool planned = rx.plan_placement(placement);
  for (size_t i = 0; planned && i < placement.count && placed < octets.size(); ++i) {
    const size_t size = std::min(placement.pieces[i].iov_len, octets.size() - placed);
    std::memcpy(placement.pieces[i].iov_base, octets.data() + placed, size);
    placed += size;
  }
  if (directly) *directly = placed;
  return planned ? rx.placed_directly(placement, octets.size(), octets.subspan(placed))
                 : rx.on_octets(octets);
}

}  // namespace uiw::test
