// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What two ends agree on at MPA start-up: pure decisions over frames, no bytes, no sockets, no
// time. RFC 5044 section 7.1, RFC 6581 section 9; choices where the RFCs leave room: shipped
// defaults in doc/protocol.md.
#pragma once

#include <cstdint>

#include "core/term_code.h"
#include "mpa/startup_frame.h"

namespace uiw::mpa {

enum class Rtr : uint8_t { kNone, kRead, kWrite };

// The outcome that full operation runs with.
struct Agreement {
  bool initiator = false;
  uint8_t revision = 2;
  bool crc = true;
  bool tx_markers = false;    // the peer asked for markers in what we send
  bool rx_markers = false;    // we asked for markers in what we receive
  bool peer_to_peer = false;  // A: the initiator's first FPDU is an RTR
  Rtr rtr = Rtr::kNone;       // initiator: what to send first. Responder: what was chosen.
  uint16_t ird = 0;           // reads the peer may have outstanding towards us (responder slots)
  uint16_t ord = 0;           // reads we may have outstanding towards the peer
  uint16_t used_ird = 0;      // initiator: how many of `ird` the peer wants; all if it does not say
  StartupHead request{}, reply{};  // of the frames that it comes from
};

// What this end wants.
struct Wishes {
  uint8_t revision = 2;  // initiator: what to ask for
  bool crc = true;
  bool markers = false;  // M: in what we receive
  bool peer_to_peer = true;
  Rtr rtr =
      Rtr::kNone;    // the only kind to offer, or the one to choose first; kNone: any, Read first
  uint16_t ird = 0;  // as the application asked (responder_resources)
  uint16_t ord = 0;  // as the application asked (initiator_depth)
  // Of both depths, where the peer says which it has: what we need for ourselves. A peer that does
  // not say so may have none, and take a Read for an error.
  uint16_t least = 0;
  // Responder: `ird` is the most that the initiator may use, as in InfiniBand, though more can be
  // had and it has asked for more; iWARP's applications only say what they need.
  bool keeps_ird = false;
  uint16_t max_ird = 128;  // device limits
  uint16_t max_ord = 128;
};

// Initiator, first step: the Request to send (private data is the caller's to add).
// A read RTR needs one ORD and one IRD slot: both are raised to 1 when peer_to_peer.
StartupFrame make_request(const Wishes& wishes);

enum class ReplyVerdict {
  kAccepted,
  kRejected,   // R=1: RFC 5044 7.1.2(3); TCP is closed, private data goes to the ULP
  kTerminate,  // RFC 6581: send `code` as a Terminate, then close
  kRevision1,  // the peer speaks revision 1 only: close, and connect again with that
  kMalformed,  // not a possible answer to our Request: close without a word
};

// Initiator, second step. On kAccepted `out` is complete; on kTerminate `code` is set.
// kRevision1: RFC 6581 section 10 has an end that does not know the enhanced form close the
// connection; RFC 5044 C.2.1 has one that does not know a revision answer with its own before it
// does. It may have delivered our depths to its application as private data, so carrying on would
// not be safe. kMalformed: any other revision or S flag than asked for. A rejection (R=1) is one in
// whatever revision and form it comes.
ReplyVerdict judge_reply(const Wishes& wishes, const StartupFrame& request,
                         const StartupFrame& reply, Agreement& out, core::TermCode& code);

// Responder: what the application is told of the peer's depths in CONNECT_REQUEST.
struct PeerDepths {
  uint16_t responder_resources;  // peer's ORD: reads it may send us, capped to our maximum
  uint16_t initiator_depth;      // peer's IRD: reads we may send
};
PeerDepths offered_depths(const StartupFrame& request, const Wishes& limits);

// Responder: the Reply to an accepted Request, and the agreement (private data, and after that the
// heads of both frames, are the caller's).
StartupFrame make_reply(const Wishes& wishes, const StartupFrame& request, Agreement& out);

// Responder: the Reply that refuses, mirroring revision, C and the peer's enhanced fields.
StartupFrame make_reject(const Wishes& wishes, const StartupFrame& request);

}  // namespace uiw::mpa
