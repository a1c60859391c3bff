// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Counts the messages that unreliable service (core/service.h) has lost, by reason. The program is
// not told of them in any other way.
#pragma once

#include <cstdint>

#include "core/tally.h"

namespace uiw::qp {

enum class Loss : uint8_t {
  kNoReceive,  // arrived, and no receive was posted
  kTooLong,    // arrived, and was longer than its receive
  kNoAccess,   // a Write arrived for memory that the peer may not write to
  kNoPeer,     // was posted, and there was no connection to send it on
  kCount,
};

using Losses = core::Tally<Loss>;

}  // namespace uiw::qp
