// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections that the process begins.
#include <cstring>
#include <utility>

#include "core/gid.h"
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
  qp.doom = Doom{.hit = hit, .edition = rules().edition, .is_by_cm = is_by_cm};
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

void visit(uint32_t qp_num, const std::function<void(Qp&)>& visit_it) {
  QueuePairs* const pairs = all.get();
  if (!pairs) return;
  const std::lock_guard lock(pairs->mutex);
  const auto found = pairs->by_number.find(qp_num);
  if (found != pairs->by_number.end()) visit_it(*found->second);
}

void visit_all(const std::function<void(Qp&)>& visit_it) {
  QueuePairs* const pairs = all.get();
  if (!pairs) return;
  const std::lock_guard lock(pairs->mutex);
  for (const auto& [number, qp] : pairs->by_number) visit_it(*qp);
}

// Whatever a rule says becomes of it, the program is told by its first request: it has asked
// nobody.
void connect_by_number(Qp& qp, const ibv_qp_attr& attr, int mask) {
  const bool names_peer = (mask & IBV_QP_DEST_QPN) && attr.dest_qp_num != core::kCmQpNumber;
  if (!names_peer || qp.is_for_datagrams || qp.foreign()) return;
  if (mask & IBV_QP_AV) {
    const std::lock_guard lock(qp.mutex);
    std::memcpy(&qp.peer, &attr.ah_attr.grh.dgid, sizeof qp.peer);
  }
  if (const std::optional<Hit> hit = next_of_process({.event = Event::kConnect}))
    doom(qp, *hit, false);
}

namespace wrap {

uiwarp_connect_fate cm_connecting(uint16_t port, uint32_t qp_num) {
  Notes notes;
  const std::optional<Hit> hit = next_of_process({.event = Event::kConnect, .port = port});
  if (!hit) return next->cm_connecting(port, qp_num);
  if (hit->rule->action == Action::kReset) {
    visit(qp_num, [&](Qp& qp) { doom(qp, *hit, true); });
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

void connected(uint32_t qp_num, const sockaddr_storage* local, const sockaddr_storage* peer) {
  visit(qp_num, [&](Qp& qp) {
    const std::lock_guard lock(qp.mutex);
    qp.peer = core::gid_of(*peer);
  });
  next->connected(qp_num, local, peer);
}

void qp_break(uiwarp_qp* qp) {
  next->qp_break(of(qp).next);
}

}  // namespace wrap
}  // namespace uiw::faults
