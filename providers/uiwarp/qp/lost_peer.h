// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The message, at the default log level, about a peer that died or became unreachable.
#pragma once

#include "core/cause.h"
#include "qp/shared.h"

namespace uiw::qp {

// Whether the queue pair was ended neither by this end's program nor by a cause that has a message
// of its own. A peer that was never found has one: rendezvous/.
inline bool is_lost_peer(core::Cause cause) {
  using core::Cause;
  return cause == Cause::kPeerSilent || cause == Cause::kPeerUnreachable ||
         cause == Cause::kPeerGone || cause == Cause::kConnectionBroken ||
         cause == Cause::kMessageCutOff || cause == Cause::kPeerDisconnected;
}

// Prints the message once for a queue pair, if it was ended by such a cause. For callers that know
// that the program has lost something: an orderly end is not reported. Thread: any.
void explain_lost_peer(Shared& shared);

}  // namespace uiw::qp
