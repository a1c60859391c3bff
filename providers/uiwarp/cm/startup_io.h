// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// MPA start-up code shared by initiator and responder: frames (startup/frames.h) and the
// application's parameters in them.
#pragma once

#include <cstdint>

#include "cm/cm.h"
#include "cm/queue_pairs.h"
#include "core/bytes.h"
#include "core/settings.h"
#include "mpa/negotiator.h"
#include "mpa/startup_frame.h"
#include "startup/frames.h"

namespace uiw::cm {

// RFC 6581 leaves 508 octets, and the 8-bit length of rdma_conn_param allows 255. But siw counts
// the enhanced block in 8 bits as well, so a peer may misread more than 251.
inline constexpr uint32_t kMaxEnhancedPrivateData = 251;
// The limit of an event.
inline constexpr uint32_t kMaxEventPrivateData = 255;

using startup::FrameCollector;
using startup::Outbox;
using startup::set_private_data;

// Copies as much private data of a peer's frame as an event can carry.
void copy_private_data(ConnParam& to, core::Bytes private_data);

inline mpa::Wishes wishes_for(const core::Settings& settings, bool peer_is_local,
                              const ConnParam& param) {
  return startup::wishes_for(settings, peer_is_local, param.responder_resources,
                             param.initiator_depth);
}

}  // namespace uiw::cm
