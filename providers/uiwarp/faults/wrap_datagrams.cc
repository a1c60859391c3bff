// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Datagrams, which may be lost, come twice, late or in another order. One that is to be lost as it
// is sent leaves with a Q_Key that nobody has: whoever gets it drops it without a word (InfiniBand
// 10.2.5), and its completion comes as ever.
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

// Without its highest bit, by which a queue pair's own would be sent.
constexpr uint32_t kNobodysKey = 0x6c6f7374;

uiwarp_datagram_fate fate_by(Action action) {
  switch (action) {
    case Action::kDuplicate:
      return UIWARP_DATAGRAM_TWICE;
    case Action::kReorder:
      return UIWARP_DATAGRAM_OVERTAKEN;
    case Action::kDelay:
      return UIWARP_DATAGRAM_LATE;
    default:
      return UIWARP_DATAGRAM_LOST;
  }
}

}  // namespace

bool is_lost(Qp& qp) {
  Notes notes;
  const bool is_down = down_until(qp.device) != 0;
  const std::lock_guard lock(qp.mutex);
  const std::optional<Hit> hit = qp.stream.next(rules(), Event::kUdSend);
  if (hit) notes.datagram(*hit, qp);
  return hit || is_down;
}

uint32_t lost_key(uint32_t remote_qkey) {
  return remote_qkey == kNobodysKey ? kNobodysKey + 1 : kNobodysKey;
}

int post_datagrams(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  int error = 0;
  const std::lock_guard lock(qp.posting);
  for (; wr && !error; wr = error ? wr : wr->next) {
    ibv_send_wr one = *wr, *ignored = nullptr;
    one.next = nullptr;
    if (is_lost(qp)) one.wr.ud.remote_qkey = lost_key(one.wr.ud.remote_qkey);
    error = next->qp_post_send(qp.next, &one, &ignored);
  }
  if (error && bad) *bad = wr;
  return error;
}

namespace wrap {

int qp_batch_address(uiwarp_qp* handle, const ibv_ah* ah, uint32_t remote_qpn,
                     uint32_t remote_qkey) {
  Qp& qp = of(handle);
  if (!qp.foreign() && qp.is_for_datagrams && is_lost(qp)) remote_qkey = lost_key(remote_qkey);
  return next->qp_batch_address(qp.next, ah, remote_qpn, remote_qkey);
}

uiwarp_datagram_fate datagram_arriving(uint32_t qp_num, uint64_t* delay) {
  Notes notes;
  uiwarp_datagram_fate fate = next->datagram_arriving(qp_num, delay);
  visit(qp_num, [&](Qp& qp) {
    if (down_until(qp.device)) {
      fate = UIWARP_DATAGRAM_LOST;
      return;
    }
    const std::lock_guard lock(qp.mutex);
    const std::optional<Hit> hit = qp.stream.next(rules(), Event::kUdRecv);
    if (!hit) return;
    notes.datagram(*hit, qp);
    *delay = static_cast<uint64_t>(hit->delay);
    fate = fate_by(hit->rule->action);
  });
  return fate;
}

}  // namespace wrap
}  // namespace uiw::faults
