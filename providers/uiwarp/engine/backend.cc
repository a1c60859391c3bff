// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/backend.h"

#include "core/assert.h"

namespace uiw::engine {

void Backend::begin(Op& op, Kind kind, int fd) {
  UIW_ASSERT(!op.in_flight_);
  op.fd_ = fd;
  op.kind_ = kind;
  op.in_flight_ = true;
  op.cancelling_ = false;
  ++in_flight_;
}

bool Backend::mark_cancelling(Op& op) {
  if (!op.in_flight_ || op.cancelling_) return false;
  op.cancelling_ = true;
  ++cancelling_;
  return true;
}

void Backend::end_later(Op& op, int result) {
  op.result_ = result;
  op.next_ended_ = nullptr;
  (last_ended_ ? last_ended_->next_ended_ : first_ended_) = &op;
  last_ended_ = &op;
}

void Backend::complete_ended() {
  // Operations that end meanwhile are completed in the next turn.
  Op* op = first_ended_;
  first_ended_ = last_ended_ = nullptr;
  while (op) {
    Op* next = op->next_ended_;
    complete(*op, op->result_, {});
    op = next;
  }
}

void Backend::complete(Op& op, int result, core::Bytes data) {
  op.in_flight_ = false;
  --in_flight_;
  if (op.cancelling_) --cancelling_;
  op.complete(result, data);  // may start the operation again, or free it
}

}  // namespace uiw::engine
