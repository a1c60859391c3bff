// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The protocol machine of one iWARP connection: a transmit side, a receive side and the state that
// they share. Pure; the simulator drives it with a pipe, session/ with a TCP stream.
#pragma once

#include "qp/rx.h"
#include "qp/shared.h"
#include "qp/tx.h"

namespace uiw::qp {

// Posters and the engine run the two sides at the same time, on two processors, so they share no
// cache line.
struct Connection {
  Shared shared;
  alignas(64) Tx tx;
  alignas(64) Rx rx;

  // Enters full operation. The peer must not know `secret`. False when out of memory. The owner
  // sets the members of `shared` that name the QP and its queues before this call.
  bool start(const mpa::Agreement& agreement, uint32_t emss, const core::SipKey& secret,
             bool wait_for_receive) {
    shared.agreement = agreement;
    // An RTR Read takes one ORD slot like any other Read (conformance 4.4).
    if (!shared.outstanding_requests.create(agreement.ord)) return false;
    if (!shared.inbound_requests.create(agreement.ird)) return false;
    tx.start(shared, emss, secret);
    rx.start(shared, wait_for_receive);
    return true;
  }
};

}  // namespace uiw::qp
