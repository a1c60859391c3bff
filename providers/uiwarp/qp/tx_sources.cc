// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which memory is still to be read for what is posted.
#include <algorithm>
#include <span>

#include "qp/opcode_rules.h"
#include "qp/tx.h"

namespace uiw::qp {

bool Tx::sends_from(const SendQueue& queue, uint32_t stag) const {
  const auto names_it = [stag](const SendWqe& wr) {
    const OpcodeRule& rule = rule_of(wr.opcode);
    if (wr.is_inline || rule.answered || rule.local) return false;
    const std::span<const ibv_sge> sges(wr.sges(), wr.sge_count);
    return std::any_of(sges.begin(), sges.end(),
                       [stag](const ibv_sge& sge) { return sge.lkey == stag; });
  };
  const bool begun = message_.kind == Message::kSend || message_.kind == Message::kWrite;
  if (begun && names_it(queue.slot(message_.slot))) return true;
  const uint64_t end = std::min(queue.posted(), start_limit_);
  for (uint64_t i = queue.started(); i < end; ++i)
    if (names_it(queue.slot(i))) return true;
  return false;
}

}  // namespace uiw::qp
