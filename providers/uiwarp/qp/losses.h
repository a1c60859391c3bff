// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How many messages unreliable service (core/service.h) has lost, and why. Nobody else is told, so
// whoever wants to know looks here.
#pragma once

#include <cstdint>

#include "core/tally.h"

namespace uiw::qp {

enum class Loss : uint8_t {
  kNoReceive,  // came, and no receive was posted
  kTooLong,    // came, and was longer than its receive
  kNoAccess,   // a Write that came, to what the peer may not write to
  kNoPeer,     // was posted, and there was no connection to send it on
  kCount,
};

using Losses = core::Tally<Loss>;

}  // namespace uiw::qp
