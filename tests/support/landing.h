// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Receiving as a driver does that puts octets where they belong.
#pragma once

#include <algorithm>
#include <cstring>

#include "qp/rx.h"

namespace uiw::test {

// One call that receives `octets`: what belongs somewhere already goes there, the rest is fed.
// `landed`: how many went there.
inline qp::RxStatus receive_to_place(qp::Rx& rx, core::Bytes octets, size_t* landed = nullptr) {
  qp::Landing landing;
  size_t placed = 0;
  const bool there = rx.land(landing);
  for (size_t i = 0; there && i < landing.count && placed < octets.size(); ++i) {
    const size_t size = std::min(landing.pieces[i].iov_len, octets.size() - placed);
    std::memcpy(landing.pieces[i].iov_base, octets.data() + placed, size);
    placed += size;
  }
  if (landed) *landed = placed;
  return there ? rx.landed(landing, octets.size(), octets.subspan(placed)) : rx.on_octets(octets);
}

}  // namespace uiw::test
