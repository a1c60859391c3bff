// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Receiving as a driver does that puts octets where they belong.
#pragma once

#include <algorithm>
#include <cstring>

#include "qp/rx.h"

namespace uiw::test {

// What belongs somewhere already goes there; returns the rest, which is to be fed. All of it when
// there is no such place.
inline core::Bytes land_octets(qp::Rx& rx, core::Bytes octets) {
  qp::Rx::Landing landing;
  if (!rx.land(landing)) return octets;
  size_t landed = 0;
  for (size_t i = 0; i < landing.count && landed < octets.size(); ++i) {
    const size_t size = std::min(landing.pieces[i].iov_len, octets.size() - landed);
    std::memcpy(landing.pieces[i].iov_base, octets.data() + landed, size);
    landed += size;
  }
  rx.landed(landed);
  return octets.subspan(landed);
}

}  // namespace uiw::test
