// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sends with immediate, between two uiwarps with the RoCE face. No RDMAP message carries bytes and
// immediate data to one receive, so an immediate hint (peer_hints.h) precedes the Send.
//
// To any other peer that hint is an empty Write, and the Send would arrive without immediate data.
// So before the first Send with immediate we ask: by a hint that says that we take immediate hints,
// and an empty RDMA Read. A uiwarp sends the same hint before it answers the Read. Every iWARP peer
// answers the Read, but only after it has processed what came earlier (RFC 5040 5.5(12)). This
// costs one round trip, once. doc/decisions/022-send-with-immediate.md
#include "qp/peer_hints.h"
#include "qp/tx.h"

namespace uiw::qp {

// The peer has said that it takes immediate hints, and asks by a Read. We say that we do before we
// answer, even when we are about to close: the peer would take a missing hint for a no.
bool Tx::owes_immediates_hint() const {
  return immediates_ == Immediates::kUntold &&
         shared_->peer_immediates.load(std::memory_order_acquire) == PeerImmediates::kTaken;
}

bool Tx::build_immediates_hint() {
  if (!ensure_batch()) return false;
  immediates_ = Immediates::kTold;
  build_empty_write(kRtrStag, kImmediatesHint);
  return true;
}

// The next request is a Send with immediate, and the peer has not said that it takes immediate
// hints. True: something was built. False: the request waits for the peer's answer, or was refused.
bool Tx::ask_immediates() {
  const uint32_t ord = shared_->agreement.ord;
  const bool refused =
      shared_->peer_immediates.load(std::memory_order_acquire) == PeerImmediates::kRefused;
  // A peer that answers no Reads cannot be asked.
  if (refused || ord == 0) {
    refuse(shared_->send_queue->first_unstarted(), IBV_WC_REM_INV_REQ_ERR,
           core::Cause::kNoImmediates);
    return false;
  }
  if (immediates_ == Immediates::kUntold) return build_immediates_hint();
  if (immediates_ == Immediates::kAsked || shared_->outstanding_requests.size() >= ord)
    return false;
  if (!ensure_batch()) return false;
  immediates_ = Immediates::kAsked;
  build_question({.asks_immediates = true});
  return true;
}

}  // namespace uiw::qp
