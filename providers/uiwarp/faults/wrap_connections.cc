// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections that the process begins.
#include "core/per_process.h"
#include "core/qp_number.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

struct QueuePairs {
  std::mutex mutex;
  std::unordered_map<uint32_t, Qp*> by_number;  // under mutex
};
constinit core::PerProcess<QueuePairs> all;

void doom(Qp& qp, const Hit& hit, bool is_by_cm) {
  const std::lock_guard lock(qp.mutex);
  qp.doom = Doom{.hit = hit, .is_by_cm = is_by_cm};
}

}  // namespace

void list(Qp& qp) {
  QueuePairs* const pairs = all.get();
  if (!pairs) return;
  const std::lock_guard lock(pairs->mutex);
  pairs->by_number[qp.number] = &qp;
}

void unlist(const Qp& qp) {
  QueuePairs* const pairs = all.get();
  if (!pairs) return;
  const std::lock_guard lock(pairs->mutex);
  // Its number may be another one's by now.
  const auto found = pairs->by_number.find(qp.number);
  if (found != pairs->by_number.end() && found->second == &qp) pairs->by_number.erase(found);
}

// Whatever a rule says becomes of it, the program is told by its first request: it has asked
// nobody.
void connect_by_number(Qp& qp, const ibv_qp_attr& attr, int mask) {
  const bool names_peer = (mask & IBV_QP_DEST_QPN) && attr.dest_qp_num != core::kCmQpNumber;
  if (!names_peer || qp.is_for_datagrams || qp.foreign()) return;
  if (const std::optional<Hit> hit = next_of_process(Event::kConnect, 0)) doom(qp, *hit, false);
}

namespace wrap {

uiwarp_connect_fate cm_connecting(uint16_t port, uint32_t qp_num) {
  Notes notes;
  const std::optional<Hit> hit = next_of_process(Event::kConnect, port);
  if (!hit) return next->cm_connecting(port, qp_num);
  if (hit->rule->action == Action::kReset) {
    QueuePairs* const pairs = all.get();
    if (!pairs) return UIWARP_CONNECT_GOES_ON;
    const std::lock_guard lock(pairs->mutex);
    const auto found = pairs->by_number.find(qp_num);
    if (found != pairs->by_number.end()) doom(*found->second, *hit, true);
    return UIWARP_CONNECT_GOES_ON;
  }
  notes.connection(*hit, qp_num);
  switch (hit->rule->action) {
    case Action::kReject:
      return UIWARP_CONNECT_REJECTED;
    case Action::kTimeOut:
      return UIWARP_CONNECT_UNANSWERED;
    default:
      return UIWARP_CONNECT_UNREACHABLE;
  }
}

void qp_break(uiwarp_qp* qp) {
  next->qp_break(of(qp).next);
}

}  // namespace wrap
}  // namespace uiw::faults
