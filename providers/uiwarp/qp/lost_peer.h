// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the program is told, at the default log level, of a peer that died or cannot be reached any
// more.
#pragma once

#include "core/cause.h"
#include "qp/shared.h"

namespace uiw::qp {

// What ended the queue pair was neither this end's program nor anything that has words of its own.
// One that was never found has: rendezvous/.
inline bool is_lost_peer(core::Cause cause) {
  using core::Cause;
  return cause == Cause::kPeerSilent || cause == Cause::kPeerUnreachable ||
         cause == Cause::kPeerGone || cause == Cause::kConnectionBroken ||
         cause == Cause::kMessageCutOff || cause == Cause::kPeerDisconnected;
}

// Once for a queue pair, if it has ended by that. For whoever knows that the program has lost
// something by it: an orderly end needs no words. Thread: any.
void explain_lost_peer(Shared& shared);

}  // namespace uiw::qp
