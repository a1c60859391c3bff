// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Small Sends and Writes: one FPDU each, copied to the arena. Programs post many in a row, and most
// of the cost of each was finding out that it needs nothing special. So conditions common to all
// are checked once, when the first is picked (tx.cc), and only the request itself is checked for
// each.
#include <algorithm>

#include "core/be.h"
#include "core/crc32c.h"
#include "mpa/framing.h"
#include "qp/send_header.h"
#include "qp/tx.h"

namespace uiw::qp {

bool Tx::is_small(const SendWqe& wr) const {
  const OpcodeRule& rule = rule_of(wr.opcode);
  return wr.length <= small_ && rule.may_inline && !rule.immediate && !markers_;
}

// The first one may be sent now. Builds it and those after it, until something else has to come
// first. False: one was refused.
bool Tx::build_small_messages() {
  if (!ensure_batch()) return false;
  SendQueue& queue = *shared_->send_queue;
  // If answers are due, they take turns with single messages.
  const bool one = shared_->inbound_requests.size() > 0;
  const uint64_t end = one ? queue.started() + 1 : std::min(queue.posted(), start_limit_);
  do {
    SendWqe& wr = queue.first_unstarted();
    if (!build_small(wr, queue.started())) return false;
    queue.start();
    has_started(wr, queue.started());
    if (queue.started() == end || !has_room(largest_copy_)) return true;
  } while (is_small(queue.first_unstarted()) && !queue.first_unstarted().fence &&
           !owes_arrival_hint(queue.first_unstarted()));
  return true;
}

// False: an SGE is not in memory of this protection domain. Then nothing was added, and the request
// was refused.
inline bool Tx::build_small(SendWqe& wr, uint64_t slot) {
  uint8_t* const start = batch_->arena_end();
  uint8_t* const ulpdu = start + mpa::kLengthSize;
  number(wr);
  uint8_t* at = encode_send_header(ulpdu, wr, 0, true);
  const uint32_t ulpdu_size = static_cast<uint32_t>(at - ulpdu) + wr.length;
  core::store_be16(start, static_cast<uint16_t>(ulpdu_size));
  uint32_t crc = core::crc32c_begin();
  if (crc_) crc = core::crc32c_update(crc, start, static_cast<size_t>(at - start));
  if (wr.is_inline) {
    copy(at, wr.inline_data, wr.length, crc);
    at += wr.length;
  }
  const ibv_sge* const sges = wr.sges();
  for (uint32_t i = 0; i < wr.sge_count; ++i) {
    const ibv_sge& sge = sges[i];
    if (sge.length == 0) continue;  // conformance 3.1: not checked
    const uint8_t* const from =
        regions_.locate(*shared_->memory, sge.lkey, shared_->pd, sge.addr, sge.length, 0);
    if (!from) [[unlikely]] {
      refuse_sge(wr, sge, sge.length);
      return false;
    }
    copy(at, from, sge.length, crc);
    at += sge.length;
  }
  at += mpa::write_trailer(at, ulpdu_size, crc_, crc);
  batch_->add_from_arena(static_cast<uint32_t>(at - start));
  batch_->end_fpdu(slot);
  return true;
}

}  // namespace uiw::qp
