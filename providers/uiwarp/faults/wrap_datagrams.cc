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

struct Prepared {
  bool is_lost;               // it is to get lost on its way
  std::optional<Hit> drop{};  // the rule that says so
};

// Makes of a datagram what is to be posted for it. qp.posting is held, by which datagrams come here
// in the order in which they are posted.
Prepared prepare(Qp& qp, ibv_send_wr& one) {
  const bool is_down = down_until(qp.device) != 0;
  const std::lock_guard lock(qp.mutex);
  Sent sent = sent_of(qp, one);
  std::optional<Hit> drop;
  if (qp.fate == Fate::kNone) count(qp, Event::kUdSend, sent);
  if (sent.hit && sent.hit->rule->action == Action::kDrop) drop.swap(sent.hit);
  if (sent.fails()) qp.fate = Fate::kFailing;
  // Those behind it, too: they are to flush.
  const bool is_failing = qp.fate == Fate::kFailing || qp.fate == Fate::kFailed;
  if (is_failing) {
    one.num_sge = 0;
    one.send_flags = IBV_SEND_SIGNALED;
    sent.signaled = true;
  }
  qp.sends.add(sent);
  return {is_failing || drop || is_down, drop};
}

// It was posted, or added to a batch.
void note(Qp& qp, const Prepared& prepared) {
  ++qp.batch_added;
  if (prepared.drop) qp.batch_lost.push_back(*prepared.drop);
}

uint32_t lost_key(uint32_t remote_qkey) {
  return remote_qkey == kNobodysKey ? kNobodysKey + 1 : kNobodysKey;
}

}  // namespace

int post_datagram(Qp& qp, const ibv_send_wr& wr) {
  ibv_send_wr one = wr, *ignored = nullptr;
  one.next = nullptr;
  const Prepared prepared = prepare(qp, one);
  if (prepared.is_lost) one.wr.ud.remote_qkey = lost_key(one.wr.ud.remote_qkey);
  const int error = next->qp_post_send(qp.next, &one, &ignored);
  if (error)
    take_back(qp, 1, 0);
  else
    note(qp, prepared);
  return error;
}

int add_datagram(Qp& qp, const ibv_send_wr& wr) {
  ibv_send_wr one = wr;
  const Prepared prepared = prepare(qp, one);
  qp.is_added_lost = prepared.is_lost;
  const int error = next->qp_batch_add(qp.next, &one);
  if (error)
    take_back(qp, 1, 0);
  else
    note(qp, prepared);
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
