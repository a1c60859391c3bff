// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which memory posted requests still have to read, for the deregistration of its region.
#include <algorithm>
#include <span>

#include "qp/opcode_rules.h"
#include "qp/tx.h"

namespace uiw::qp {

namespace {

bool sends_from(const SendWqe& wr, uint32_t stag) {
  const OpcodeRule& rule = rule_of(wr.opcode);
  if (wr.is_inline || rule.answered || rule.local) return false;
  const std::span<const ibv_sge> sges(wr.sges(), wr.sge_count);
  return std::any_of(sges.begin(), sges.end(),
                     [stag](const ibv_sge& sge) { return sge.lkey == stag; });
}

bool any_sends_from(SendQueue& queue, uint64_t first, uint64_t end, uint32_t stag) {
  for (; first < end; ++first)
    if (sends_from(queue.slot(first), stag)) return true;
  return false;
}

}  // namespace

bool Tx::lets_go_of(SendQueue& queue, uint32_t stag, bool now) {
  // FPDUs that TCP has not taken may point into the program's memory.
  const bool is_built = pending() && any_sends_from(queue, queue.retired(), queue.started(), stag);
  if (is_built && !batch_->detach()) return false;
  const bool is_begun = (message_.kind == Message::kSend || message_.kind == Message::kWrite) &&
                        sends_from(queue.slot(message_.slot), stag);
  if (is_begun && now && !fault_.raised)
    raise_local(queue.slot(message_.slot), IBV_WC_LOC_PROT_ERR, core::Cause::kKeyDeregistered);
  // A refused request is not sent, nor those after it.
  return now || fault_.raised ||
         (!is_begun &&
          (found_.any() ||
           !any_sends_from(queue, queue.started(), std::min(queue.posted(), start_limit_), stag)));
}

}  // namespace uiw::qp
