// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Unreliable service without a peer: requests complete as if they had been sent.
#include "qp/opcode_rules.h"
#include "qp/tx.h"

namespace uiw::qp {

void Tx::discard(Shared& shared) {
  shared_ = &shared;
  message_ = {};
  SendQueue& queue = *shared.send_queue;
  while (!fault_.raised) {
    if (!queue.has_unretired()) {
      if (!queue.has_unstarted() || !start_discarded(queue.first_unstarted())) break;
    } else if (!is_done(queue.retired(), queue.first_unretired())) {
      shared.losses.count(Loss::kNoPeer);  // it was started when the connection ended
    }
    complete(queue.first_unretired(), IBV_WC_SUCCESS);
  }
  regions_.release();
}

// False: fault_ was raised.
bool Tx::start_discarded(SendWqe& wr) {
  if (rule_of(wr.opcode).local) {
    const core::Cause cause = run(wr);
    if (cause != core::Cause::kNone) refuse(wr, IBV_WC_MW_BIND_ERR, cause);
  } else if (check_local_sges(wr)) {
    shared_->losses.count(Loss::kNoPeer);
  }
  if (fault_.raised) return false;
  shared_->send_queue->start();
  return true;
}

}  // namespace uiw::qp
