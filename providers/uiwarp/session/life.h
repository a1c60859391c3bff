// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How far the connection of a queue pair has come. A queue pair has one connection, until RESET.
// Thread: engine.
#pragma once

#include <cstdint>

#include "core/assert.h"

namespace uiw::session {

// The connection itself. It never goes back.
enum class Phase : uint8_t {
  kNone,      // there was none yet
  kStarting,  // the sender may send; bytes that arrive wait in the stream until receive()
  kOpen,      // bytes are received; either direction may be closed already
  kEnding,    // nothing is received; the sender was told to let go of the stream
  kOver,      // the stream is closed or lingers; there will be no other before RESET
};

// Whether the queue pair has failed, or was moved to ERR by ibv_modify_qp; also without a
// connection.
enum class Failure : uint8_t {
  kNone,
  kBegun,    // the plan is written, nothing is received any more, the sender flushes
  kHandled,  // the send queue is flushed; the Terminate and FIN go out, if any
};

enum class Inbound : uint8_t {
  kOpen,
  kFinWaits,  // the peer's FIN was seen; bytes before it wait for a receive or the sender
  kClosed,    // everything up to the FIN was received
};

enum class Outbound : uint8_t {
  kOpen,
  kDraining,  // rdma_disconnect: what is posted is sent, then FIN
  kFinSent,
};

// What ~QueuePair, or ibv_modify_qp to RESET, waits for.
enum class Release : uint8_t {
  kNotWanted,
  kWanted,  // somebody waits; nothing new begins
  kDone,
};

// Whether the program, before it ends the connection, waits until the peer has asked whether what
// it sent has arrived (farewell.cc).
enum class Farewell : uint8_t {
  kNone,   // the program has not begun to end it
  kWaits,  // the end waits for the peer's question, or for the time limit
  kOver,
};

// RESET begins all of this anew.
struct Life {
  Phase phase = Phase::kNone;
  Failure failure = Failure::kNone;
  Inbound inbound = Inbound::kOpen;
  Outbound outbound = Outbound::kOpen;
  Release release = Release::kNotWanted;
  bool broken = false;         // the socket carries nothing more in either direction
  uint64_t moved_at_look = 0;  // octets_moved() at the last look of close_timer
  int quiet_looks = 0;         // looks in a row at which nothing had moved
  int drain_looks = 0;         // all looks while draining

  void enter(Phase next) {
    UIW_ASSERT(next > phase && (next != Phase::kOver || phase == Phase::kEnding));
    phase = next;
  }
  // There is a stream.
  bool connected() const { return phase != Phase::kNone && phase != Phase::kOver; }
  // There is one, and nothing but an error has begun to end it.
  bool stands() const { return phase == Phase::kStarting || phase == Phase::kOpen; }
  // Received bytes are processed, or will be from kOpen on.
  bool takes_input() const { return stands() && failure == Failure::kNone; }
  bool released() const { return release != Release::kNotWanted; }
  // Established, and nothing has begun to end it: a poller may make progress for it.
  bool is_settled() const {
    return phase == Phase::kOpen && failure == Failure::kNone && inbound == Inbound::kOpen &&
           outbound == Outbound::kOpen && release == Release::kNotWanted && !broken;
  }
};

}  // namespace uiw::session
