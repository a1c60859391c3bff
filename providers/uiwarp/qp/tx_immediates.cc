// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Sends with immediate, between two uiwarps of the RoCE face. No RDMAP message carries bytes and
// immediate data to one receive; so an immediate hint (peer_hints.h) goes before the Send.
//
// To any other peer that hint is an empty Write, and it would take the Send without immediate data.
// So the first Send with immediate asks: a hint that says we take them, and an empty RDMA Read. A
// uiwarp says the same of itself before it answers the Read, and every iWARP peer answers it,
// not before it has dealt with what came earlier (RFC 5040 5.5(12)). One round trip, once.
// doc/decisions/022-send-with-immediate.md
#include "qp/peer_hints.h"
#include "qp/tx.h"

namespace uiw::qp {

// The peer has said that it takes them, and asks by a Read, before whose answer we say so: also
// when we are about to close, or it would take silence for a no.
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

// The next request is a Send with immediate, and the peer has not said that it takes them. True:
// something was built. False: its answer has to come first, or the request is refused.
bool Tx::ask_immediates() {
  const uint32_t ord = shared_->agreement.ord;
  const bool refused =
      shared_->peer_immediates.load(std::memory_order_acquire) == PeerImmediates::kRefused;
  // A peer that answers no Read at all cannot be asked.
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
