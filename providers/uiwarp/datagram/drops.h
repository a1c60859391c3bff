// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Why datagrams did not come to a receive, or not leave. Nobody is told: the service is unreliable.
#pragma once

#include <cstdint>

#include "core/tally.h"

namespace uiw::datagram {

enum class Drop : uint8_t {
  kMalformed,       // no header of ours, or larger than the MTU
  kForged,          // from another port than the sender's number has
  kNoQueuePair,     // of that number at this port
  kOtherInterface,  // to a group, by another interface than the queue pairs are attached at
  kNotReceiving,    // the queue pair is in a state that does not receive
  kQkey,            // another one than the queue pair's
  kNoReceive,       // none is posted
  kTooLong,         // for the oldest receive
  kTooManyLate,     // by an instrument, to be one more of them
  kNotSent,         // the kernel did not take it
  kCount,
};

using Drops = core::Tally<Drop>;

// Of this process, since it began.
Drops& drops();

}  // namespace uiw::datagram
