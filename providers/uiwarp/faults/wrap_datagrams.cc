// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Datagrams, which may be lost, come twice, late or in another order. One that is to be lost as it
// is sent leaves with a Q_Key that nobody has: whoever gets it drops it without a word (InfiniBand
// 10.2.5), and its completion comes as ever. So does one that is to fail, and those behind it:
// which complete otherwise then (wrap_completions.cc).
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

// Makes of a datagram what is to be posted for it. False: it is to get lost on its way. qp.posting
// is held, by which datagrams come here in the order in which they are posted.
bool prepare(Qp& qp, ibv_send_wr& one) {
  Notes notes;
  const bool is_down = down_until(qp.device) != 0;
  const std::lock_guard lock(qp.mutex);
  Sent sent = sent_of(qp, one);
  std::optional<Hit> hit;
  if (qp.fate == Fate::kNone) hit = qp.stream.next(rules(), Event::kUdSend);
  const bool is_lost = hit && hit->rule->action == Action::kDrop;
  if (is_lost)
    notes.datagram(*hit, qp);
  else
    sent.hit = hit;
  if (sent.fails()) qp.fate = Fate::kFailing;
  // Those behind it, too: they are to flush.
  const bool is_failing = qp.fate == Fate::kFailing || qp.fate == Fate::kFailed;
  if (is_failing) {
    one.num_sge = 0;
    one.send_flags = IBV_SEND_SIGNALED;
    sent.signaled = true;
  }
  qp.sends.add(sent);
  return !is_failing && !is_lost && !is_down;
}

uint32_t lost_key(uint32_t remote_qkey) {
  return remote_qkey == kNobodysKey ? kNobodysKey + 1 : kNobodysKey;
}

}  // namespace

int post_datagram(Qp& qp, const ibv_send_wr& wr) {
  ibv_send_wr one = wr, *ignored = nullptr;
  one.next = nullptr;
  if (!prepare(qp, one)) one.wr.ud.remote_qkey = lost_key(one.wr.ud.remote_qkey);
  const int error = next->qp_post_send(qp.next, &one, &ignored);
  if (error) take_back(qp, 1, 0);
  return error;
}

int add_datagram(Qp& qp, const ibv_send_wr& wr) {
  ibv_send_wr one = wr;
  qp.is_added_lost = !prepare(qp, one);
  const int error = next->qp_batch_add(qp.next, &one);
  if (error)
    take_back(qp, 1, 0);
  else
    ++qp.batch_added;
  return error;
}

namespace wrap {

int qp_batch_address(uiwarp_qp* handle, const ibv_ah* ah, uint32_t remote_qpn,
                     uint32_t remote_qkey) {
  Qp& qp = of(handle);
  if (!qp.foreign() && qp.is_for_datagrams && qp.is_added_lost) remote_qkey = lost_key(remote_qkey);
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
