// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a connection ends: which Terminate the peer gets, which work request is to blame, and what
// the program is told.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "core/cause.h"
#include "qp/send_queue.h"
#include "qp/tx.h"

namespace uiw::session {

struct EndPlan {
  std::optional<rdmap::Terminate> terminate{};  // for the peer
  std::optional<rdmap::Terminate> received{};   // from the peer
  std::optional<ibv_event_type> event{};        // for the program
  uint64_t failed_slot = qp::kNoSlot;           // in the send queue; completes with `failed_status`
  ibv_wc_status failed_status = IBV_WC_SUCCESS;
  core::Cause cause = core::Cause::kNone;  // vendor_err of every request that fails
  int error = 0;               // for the observer: 0 after an orderly close, else a positive errno
  bool answers_first = false;  // before the Terminate: what the peer asked for before its fault
  bool send_failed = false;    // the sender has marked the request to blame

  // The receives are flushed when the sender has handled the error. A send may be to blame, which
  // completes first; or a program that sees them flushed would end the queue pair, and cut off the
  // answers.
  bool flushes_receives_late() const { return may_blame_a_send() || answers_first; }
  bool may_blame_a_send() const { return send_failed || failed_slot != qp::kNoSlot || received; }
};

}  // namespace uiw::session
