// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What both sides of a connection by number request in MPA start-up. As both are uiwarp, the
// settings for peers of rdma_cm do not apply.
#pragma once

#include <algorithm>

#include "core/settings.h"
#include "device/device.h"
#include "startup/frames.h"

namespace uiw::rendezvous {

// `ird`: the program's max_dest_rd_atomic. Its max_rd_atomic is not known yet; the peer's
// max_dest_rd_atomic is the limit instead.
inline mpa::Wishes wishes(bool peer_is_local, uint16_t ird) {
  ird = std::max<uint16_t>(ird, 1);
  mpa::Wishes wishes =
      startup::wishes_for(core::settings(), peer_is_local, ird, device::Limits::kMaxReads);
  wishes.revision = 2;
  wishes.peer_to_peer = true;  // either side may send first
  wishes.max_ird = ird;
  return wishes;
}

}  // namespace uiw::rendezvous
