// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp/lost_peer.h"

namespace uiw::qp {

void explain_lost_peer(Shared& shared) {
  const core::Cause cause = shared.end.load(std::memory_order_relaxed);
  if (!is_lost_peer(cause)) return;
  const auto value = static_cast<uint32_t>(cause);
  core::explain(shared.told, "queue pair 0x%06x has lost its peer (vendor_err 0x%02x): %s",
                shared.qp_num, value, core::find_cause(value)->text);
}

}  // namespace uiw::qp
