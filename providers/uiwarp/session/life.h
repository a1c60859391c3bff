// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How far the one connection of a queue pair has come. Thread: engine.
#pragma once

#include <cstdint>

#include "core/assert.h"

namespace uiw::session {

// The connection itself. It only ever goes on.
enum class Phase : uint8_t {
  kNone,      // there was none yet
  kStarting,  // the sender may send; what arrives waits in the stream until receive()
  kOpen,      // bytes are received; either direction may be closed already
  kEnding,    // nothing is received; the sender is to let go of the stream
  kOver,      // the stream is closed or lingers; there will be no other
};

// What went wrong, or was made to by ibv_modify_qp to ERR; also without a connection.
enum class Failure : uint8_t {
  kNone,
  kBegun,    // the plan is written, nothing is received any more, the sender flushes
  kHandled,  // the send queue is flushed; the Terminate and FIN go out, if any
};

enum class Inbound : uint8_t {
  kOpen,
  kFinWaits,  // the peer's FIN was seen; bytes before it wait for a receive or the sender
  kClosed,    // all of it was received
};

enum class Outbound : uint8_t {
  kOpen,
  kDraining,  // rdma_disconnect: FIN follows what is posted
  kFinSent,
};

// What ~QueuePair, or ibv_modify_qp to RESET, waits for.
enum class Release : uint8_t {
  kNotWanted,
  kWanted,  // nothing begins any more
  kDone,
};

// Whether the peer may still ask for what it has sent, before this end goes (farewell.cc).
enum class Farewell : uint8_t {
  kNone,   // nobody goes
  kWaits,  // somebody does, once the peer has asked, or the time for that is over
  kOver,
};

// Everything here begins anew with RESET.
struct Life {
  Phase phase = Phase::kNone;
  Failure failure = Failure::kNone;
  Inbound inbound = Inbound::kOpen;
  Outbound outbound = Outbound::kOpen;
  Release release = Release::kNotWanted;
  bool broken = false;         // the socket carries nothing more in either direction
  uint64_t moved_at_look = 0;  // bytes and arrivals, when the closing was looked at last
  int quiet_looks = 0;         // in a row: nothing moved
  int drain_looks = 0;         // in all, while draining

  void enter(Phase next) {
    UIW_ASSERT(next > phase && (next != Phase::kOver || phase == Phase::kEnding));
    phase = next;
  }
  // There is a stream.
  bool connected() const { return phase != Phase::kNone && phase != Phase::kOver; }
  // There is one, and nothing has begun to end it, but for errors.
  bool stands() const { return phase == Phase::kStarting || phase == Phase::kOpen; }
  // Bytes are looked at, or will be.
  bool takes_input() const { return stands() && failure == Failure::kNone; }
  bool released() const { return release != Release::kNotWanted; }
  // It is as it is for nearly all its life: a poller may run it.
  bool is_settled() const {
    return phase == Phase::kOpen && failure == Failure::kNone && inbound == Inbound::kOpen &&
           outbound == Outbound::kOpen && release == Release::kNotWanted && !broken;
  }
};

}  // namespace uiw::session
