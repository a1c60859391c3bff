// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connections that the process begins, and those that are requested of it.
#include <cstring>
#include <deque>
#include <iterator>
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

// A connection: its addresses as of the two ends of TCP.
struct Ends {
  in6_addr local, peer;
  uint16_t local_port, peer_port;

  bool operator==(const Ends& other) const {
    return IN6_ARE_ADDR_EQUAL(&local, &other.local) && IN6_ARE_ADDR_EQUAL(&peer, &other.peer) &&
           local_port == other.local_port && peer_port == other.peer_port;
  }
};

Ends ends_of(const sockaddr_storage& local, const sockaddr_storage& peer) {
  return {core::gid_of(local), core::gid_of(peer), core::port_of(local), core::port_of(peer)};
}

// Those that are to be reset, and have no queue pair yet: the program may never accept them.
struct Awaited {
  static constexpr size_t kMost = 1024;  // the oldest are forgotten
  std::mutex mutex;
  std::deque<std::pair<Ends, Hit>> list;  // under mutex

  void add(const Ends& ends, const Hit& hit) {
    const std::lock_guard lock(mutex);
    list.emplace_back(ends, hit);
    if (list.size() > kMost) list.pop_front();
  }
  // The newest of these ends, once.
  std::optional<Hit> take(const Ends& ends) {
    const std::lock_guard lock(mutex);
    for (auto each = list.rbegin(); each != list.rend(); ++each) {
      if (!(each->first == ends)) continue;
      const Hit hit = each->second;
      list.erase(std::next(each).base());
      return hit;
    }
    return {};
  }
};
constinit core::PerProcess<Awaited> awaited;

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
  {
    const std::lock_guard lock(qp.mutex);
    qp.is_by_number = true;
    if (mask & IBV_QP_AV) std::memcpy(&qp.peer, &attr.ah_attr.grh.dgid, sizeof qp.peer);
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

uiwarp_connect_fate cm_accepting(const sockaddr_storage* local, const sockaddr_storage* peer) {
  Notes notes;
  const Ends ends = ends_of(*local, *peer);
  const std::optional<Hit> hit =
      next_of_process({.event = Event::kAccept, .port = ends.local_port});
  if (!hit) return next->cm_accepting(local, peer);
  if (hit->rule->action == Action::kReset) {
    if (Awaited* const list = awaited.get()) list->add(ends, *hit);
    return UIWARP_CONNECT_GOES_ON;
  }
  notes.connection(*hit, 0);
  return hit->rule->action == Action::kReject ? UIWARP_CONNECT_REJECTED : UIWARP_CONNECT_UNANSWERED;
}

void connected(uint32_t qp_num, const sockaddr_storage* local, const sockaddr_storage* peer) {
  Awaited* const list = awaited.get();
  if (const std::optional<Hit> hit = list ? list->take(ends_of(*local, *peer)) : std::nullopt)
    visit(qp_num, [&](Qp& qp) { doom(qp, *hit, true); });
  visit(qp_num, [&](Qp& qp) {
    const std::lock_guard lock(qp.mutex);
    qp.peer = core::gid_of(*peer);
  });
  next->connected(qp_num, local, peer);
}

void qp_break(uiwarp_qp* qp) {
  next->qp_break(of(qp).next);
}

void qp_deafen(uiwarp_qp* qp, int deaf) {
  next->qp_deafen(of(qp).next, deaf);
}

int64_t qp_patience(uiwarp_qp* qp) {
  return next->qp_patience(of(qp).next);
}

}  // namespace wrap
}  // namespace uiw::faults
