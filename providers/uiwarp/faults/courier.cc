// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Requests that are not to leave yet: a rule paces what goes to their peer, or holds the port down.
// They are kept, with all that they refer to but the memory of their SGEs, and posted later, in
// their order, by the thread of later(). What a port that is down has held up for as long as the
// queue pair waits for an answer fails, as an adapter repeats it in vain.
#include <cerrno>
#include <limits>
#include <span>
#include <utility>

#include "core/log.h"
#include "core/per_process.h"
#include "core/request_sges.h"
#include "core/tuning.h"
#include "faults/later.h"
#include "faults/pace.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

struct Links {
  std::mutex mutex;
  std::unordered_map<const Rule*, Pace> by_rule;  // under mutex
};
constinit core::PerProcess<Links> all_links;

Parcel parcel_of(const ibv_send_wr& wr, core::Nanoseconds due) {
  const std::span<const ibv_sge> sges = core::sges_of(wr);
  Parcel parcel{.wr = wr, .sges = {sges.begin(), sges.end()}, .inline_data = {}, .due = due};
  parcel.wr.next = nullptr;
  if (wr.opcode == IBV_WR_BIND_MW && wr.bind_mw.bind_info.mr)
    parcel.region = *wr.bind_mw.bind_info.mr;
  if (!(wr.send_flags & IBV_SEND_INLINE)) return parcel;
  for (const ibv_sge& sge : parcel.sges) {
    const auto* const from = reinterpret_cast<const uint8_t*>(sge.addr);
    parcel.inline_data.insert(parcel.inline_data.end(), from, from + sge.length);
  }
  return parcel;
}

Occasion departure_to(const in6_addr& peer) {
  return {.event = Event::kDeparture, .peer = peer};
}

// The rule that paces a request, if one does now. qp.posting is held.
std::optional<Paced> paced(Qp& qp, const ibv_send_wr& wr) {
  const std::lock_guard lock(qp.mutex);
  if (IN6_IS_ADDR_UNSPECIFIED(&qp.peer)) return {};
  const Rules& now = rules();
  const std::optional<Hit> hit = qp.stream.next(now, departure_to(qp.peer));
  if (!hit) return {};
  return Paced{*hit, &now, qp.peer, core::bytes_of(core::sges_of(wr))};
}

// When that rule lets it leave; 0: now.
core::Nanoseconds departure(const Paced& paced) {
  Links* const links = all_links.get();
  if (!links) return 0;
  const std::lock_guard lock(links->mutex);
  Pace& link = links->by_rule[paced.hit.rule];
  return link.departure(core::now(), paced.bytes, paced.hit.rule->rate) + paced.hit.delay;
}

void give_back(Qp& qp, const Paced& paced) {
  {
    const std::lock_guard lock(qp.mutex);
    qp.stream.take_back(*paced.rules, departure_to(paced.peer));
  }
  Links* const links = all_links.get();
  if (!links) return;
  const std::lock_guard lock(links->mutex);
  links->by_rule[paced.hit.rule].take_back(paced.bytes, paced.hit.rule->rate);
}

int post(Qp& qp, Parcel& parcel) {
  parcel.wr.sg_list = parcel.sges.data();
  if (parcel.region) parcel.wr.bind_mw.bind_info.mr = &*parcel.region;
  uint64_t at = 0;
  if (parcel.wr.send_flags & IBV_SEND_INLINE)
    for (ibv_sge& sge : parcel.sges) {
      sge.addr = reinterpret_cast<uint64_t>(parcel.inline_data.data() + at);
      at += sge.length;
    }
  ibv_send_wr* ignored = nullptr;
  return next->qp_post_send(qp.next, &parcel.wr, &ignored);
}

// The program was told that it is posted: it flushes, and the queue pair ends.
void refuse(Qp& qp, const Parcel& parcel, int error) {
  core::log(core::LogLevel::kWarn,
            "faults: queue pair 0x%06x: a request that a rule had kept back was refused then: %s",
            qp.number, strerrordesc_np(error));
  const std::lock_guard lock(qp.mutex);
  qp.held.push_back({.wr_id = parcel.wr.wr_id,
                     .signaled = true,
                     .opcode = parcel.wr.opcode,
                     .is_replaced = true});
  qp.fate = Fate::kFailed;
}

// The oldest of what is kept back has not been answered in time; what is behind it flushes. Nothing
// of it is posted. qp.posting is held.
void give_up(Qp& qp, const Rule& rule) {
  Notes notes;
  const std::lock_guard lock(qp.mutex);
  std::vector<Sent> late = qp.sends.extract_newest(qp.parcels.size());
  for (Sent& each : late)
    each = {.wr_id = each.wr_id, .signaled = true, .opcode = each.opcode, .is_replaced = true};
  qp.held.insert(qp.held.begin(), late.begin(), late.end());
  qp.parcels.clear();
  qp.times_out = qp.is_injected = true;
  qp.fate = Fate::kFailed;
  notes.unanswered(rule, qp);
}

// When give_up() is to come; never: no time-out runs.
core::Nanoseconds patience_ends(Qp& qp, const std::optional<Downtime>& down) {
  constexpr core::Nanoseconds kNever = std::numeric_limits<core::Nanoseconds>::max();
  const core::Nanoseconds patience = down ? next->qp_patience(qp.next) : 0;
  if (patience == 0 || qp.parcels.empty()) return kNever;
  return std::max(qp.parcels.front().due, down->since) + patience;
}

void deliver(uint32_t qp_num);

// qp.posting is held.
void call_again(Qp& qp, core::Nanoseconds when) {
  qp.has_courier = later(when, [number = qp.number] { deliver(number); });
}

// Whether one was refused. qp.posting is held.
bool deliver_due(Qp& qp, core::Nanoseconds now) {
  while (!qp.parcels.empty()) {
    Parcel& first = qp.parcels.front();
    if (!qp.is_over) {
      const std::optional<Downtime> down = downtime(qp.device);
      const core::Nanoseconds ends = patience_ends(qp, down);
      if (ends <= now) return give_up(qp, *down->rule), true;
      const core::Nanoseconds due = std::max(first.due, down ? down->until : 0);
      if (due > now) return call_again(qp, std::min(due, ends)), false;
    }
    const int error = post(qp, first);
    // Its queue is full of those before it.
    if (error == ENOMEM) return call_again(qp, now + core::tuning::kFailingQueueLook), false;
    if (error) refuse(qp, first, error);
    qp.parcels.pop_front();
    if (error) return call_again(qp, now), true;
  }
  return false;
}

void deliver(uint32_t qp_num) {
  std::shared_ptr<Cq> failed;
  visit(qp_num, [&](Qp& qp) {
    const std::unique_lock posting(qp.posting, std::try_to_lock);
    const core::Nanoseconds now = core::now();
    if (!posting) {
      later(now + core::tuning::kFailingQueueLook, [qp_num] { deliver(qp_num); });
      return;
    }
    qp.has_courier = false;
    if (deliver_due(qp, now)) failed = qp.send_cq;
  });
  if (failed) watch(failed);
}

}  // namespace

bool keep_back(Qp& qp, const ibv_send_wr& wr) {
  if (qp.is_over && qp.parcels.empty()) return false;
  const std::optional<Paced> by_rule = paced(qp, wr);
  const core::Nanoseconds due = by_rule ? departure(*by_rule) : 0;
  const std::optional<Downtime> down = downtime(qp.device);
  if (due == 0 && !down && qp.parcels.empty()) return false;
  const core::Nanoseconds behind = qp.parcels.empty() ? core::now() : qp.parcels.back().due;
  qp.parcels.push_back(parcel_of(wr, std::max(due, behind)));
  qp.parcels.back().paced = by_rule;
  if (!qp.has_courier) {
    const core::Nanoseconds leaves = std::max(qp.parcels.front().due, down ? down->until : 0);
    call_again(qp, std::min(leaves, patience_ends(qp, down)));
  }
  // Without a thread nothing is kept.
  if (!qp.has_courier) qp.parcels.clear();
  return qp.has_courier;
}

void look_at_parcels(const Qp& qp) {
  later(core::now(), [number = qp.number] { deliver(number); });
}

void hurry(Qp& qp) {
  const std::unique_lock posting(qp.posting, std::try_to_lock);
  if (!posting) return;  // somebody posts: then they leave when they are due
  for (Parcel& parcel : qp.parcels) {
    if (post(qp, parcel) == 0) continue;
    const std::lock_guard hold(qp.mutex);
    qp.sends.extract_newest(1);
  }
  qp.parcels.clear();
}

void drop_parcels(Qp& qp, size_t count) {
  for (; count > 0 && !qp.parcels.empty(); --count, qp.parcels.pop_back())
    if (qp.parcels.back().paced) give_back(qp, *qp.parcels.back().paced);
}

void tell_of_pace(Qp& qp, size_t count, Notes& notes) {
  const std::lock_guard lock(qp.mutex);
  for (size_t i = qp.parcels.size() - std::min(count, qp.parcels.size()); i < qp.parcels.size();
       ++i) {
    const std::optional<Paced>& paced = qp.parcels[i].paced;
    if (!paced || std::exchange(qp.paced, paced->rules->edition) == paced->rules->edition) continue;
    notes.paced(paced->hit, qp);
  }
}

}  // namespace uiw::faults
