// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Rules that meet a time, from the process' first device on, or from when they are put in force.
#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "core/log.h"
#include "core/per_process.h"
#include "core/tuning.h"
#include "faults/later.h"
#include "faults/wraps.h"

namespace uiw::faults {
namespace {

constexpr core::Nanoseconds kForGood = std::numeric_limits<core::Nanoseconds>::max() / 2;

struct Times {
  std::mutex mutex;
  uint64_t edition = 0;  // under mutex: whose times are set
  // Under mutex: of each device, by the name that rules have for it, those that hold it down.
  std::unordered_map<std::string, std::vector<Downtime>> down;
  std::atomic<bool> any_down{false};
};
constinit core::PerProcess<Times> all;

bool is_of(const Rule& rule, const std::string& device) {
  return rule.device == "*" || rule.device == device;
}

// Each completion queue of its queue pairs once or twice.
std::vector<std::shared_ptr<Cq>> queues_of(const Rule& rule) {
  std::vector<std::shared_ptr<Cq>> queues;
  visit_all([&](Qp& qp) {
    if (!is_of(rule, qp.device)) return;
    queues.push_back(qp.send_cq);
    queues.push_back(qp.recv_cq);
  });
  return queues;
}

// What a device that has failed does.
void fail_queue_pairs(const Rule& rule) {
  visit_all([&](Qp& qp) {
    if (!is_of(rule, qp.device) || qp.is_for_datagrams) return;
    const std::lock_guard lock(qp.mutex);
    qp.is_injected = true;
    if (qp.fate != Fate::kOver) qp.fate = Fate::kFailed;
  });
  for (const auto& cq : queues_of(rule)) watch(cq);
}

// How a rule stands to the port that it takes down.
enum class Hold : uint8_t {
  kNone,   // it does not hold it: it has not come yet, is over, or the rules were changed meanwhile
  kAlone,  // it does, and no other rule of this name
  kShared  // it does, and so does another one
};

Hold hold_of(const Rule& rule) {
  Times* const times = all.get();
  const std::lock_guard lock(times->mutex);
  const auto found = times->down.find(rule.device);
  if (found == times->down.end()) return Hold::kNone;
  if (std::ranges::count(found->second, &rule, &Downtime::rule) == 0) return Hold::kNone;
  return found->second.size() == 1 ? Hold::kAlone : Hold::kShared;
}

void begin_hold(const Rule& rule, core::Nanoseconds until) {
  // It goes on being down where another rule has begun it: what waits for an answer waits since.
  const std::optional<Downtime> before = downtime(rule.device);
  Times* const times = all.get();
  const std::lock_guard lock(times->mutex);
  times->down[rule.device].push_back({before ? before->since : core::now(), until, &rule});
  times->any_down = true;
}

void end_hold(const Rule& rule) {
  Times* const times = all.get();
  const std::lock_guard lock(times->mutex);
  std::vector<Downtime>& holds = times->down[rule.device];
  std::erase_if(holds, [&](const Downtime& each) { return each.rule == &rule; });
  if (holds.empty()) times->down.erase(rule.device);
  times->any_down = !times->down.empty();
}

// As many as there are, as long as a rule holds the port down; those that come later qp_create()
// does.
void deafen(const Rule& rule) {
  visit_all([&](Qp& qp) {
    if (is_of(rule, qp.device)) next->qp_deafen(qp.next, down_until(qp.device) != 0);
  });
}

void lift(const Rule& rule) {
  Notes notes;
  const Hold hold = hold_of(rule);
  if (hold == Hold::kNone) return;
  end_hold(rule);
  if (hold == Hold::kShared || next->device_hold_down(rule.device.c_str(), 0)) return;
  deafen(rule);
  if (down_until(rule.device)) return;  // by a rule of all devices
  notes.timed(rule, "its port is up again");
  visit_all([&](Qp& qp) {
    if (is_of(rule, qp.device)) look_at_parcels(qp);
  });
}

// The stack has its own time-outs for what was on its way when the port went down. What is kept
// back behind that flushes.
void look_while_down(const Rule& rule) {
  if (hold_of(rule) == Hold::kNone) return;
  for (const auto& cq : queues_of(rule)) {
    Notes notes;
    const std::lock_guard lock(cq->mutex);
    if (!cq->is_destroyed) take_completions(*cq, notes);
  }
  visit_all([&](Qp& qp) {
    if (is_of(rule, qp.device) && qp.is_over) look_at_parcels(qp);
  });
  later(core::now() + core::tuning::kDownPortLook, [&rule] { look_while_down(rule); });
}

void take_down(const Rule& rule) {
  Notes notes;
  const core::Nanoseconds until = rule.lasts ? core::now() + rule.lasts : kForGood;
  begin_hold(rule, until);
  if (next->device_hold_down(rule.device.c_str(), 1)) {
    end_hold(rule);
    return notes.timed(rule, "there is no such device, whose port could go down");
  }
  deafen(rule);
  notes.timed(rule, "its port is down");
  later(core::now() + core::tuning::kDownPortLook, [&rule] { look_while_down(rule); });
  if (rule.lasts) later(until, [&rule] { lift(rule); });
}

void raise(const Rule& rule) {
  Notes notes;
  char what[60];
  std::snprintf(what, sizeof what, "IBV_EVENT_%s", name_of(async_names(), rule.async));
  if (next->device_pretend(rule.device.c_str(), rule.async))
    return notes.timed(rule, "there is no such device, of which an event could come");
  notes.timed(rule, what);
  if (rule.async != IBV_EVENT_DEVICE_FATAL) return;
  notes.before_the_stack();
  fail_queue_pairs(rule);
}

// A name that is wrong would be told of late, or never when the program ends before.
void tell_of_absent(const std::vector<const Rule*>& timed) {
  for (const Rule* const rule : timed)
    if (rule->device != "*" && !next->device_find(rule->device.c_str()))
      core::log(core::LogLevel::kWarn,
                "faults: line %d: there is no device %s now (`uiwarp devices` lists them); the "
                "rule does nothing unless it is there by then",
                rule->line, rule->device.c_str());
}

void happen(const Rule& rule) {
  switch (rule.action) {
    case Action::kPortDown:
      return take_down(rule);
    case Action::kAsync:
      return raise(rule);
    default: {
      Notes notes;
      notes.timed(rule, "GIDs move one index up");
      next->device_shift_gids(rule.device.c_str());
    }
  }
}

}  // namespace

// Of several rules the one that holds it for longest, since the first of them began.
std::optional<Downtime> downtime(const std::string& device) {
  Times* const times = all.get();
  if (!times || !times->any_down.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(times->mutex);
  std::optional<Downtime> longest;
  const core::Nanoseconds now = core::now();
  core::Nanoseconds since = now;
  for (const std::string& name : {device, std::string("*")}) {
    const auto found = times->down.find(name);
    if (found == times->down.end()) continue;
    for (const Downtime& each : found->second) {
      if (each.until <= now) continue;
      since = std::min(since, each.since);
      if (!longest || longest->until < each.until) longest = each;
    }
  }
  if (longest) longest->since = since;
  return longest;
}

core::Nanoseconds down_until(const std::string& device) {
  const std::optional<Downtime> down = downtime(device);
  return down ? down->until : 0;
}

void start_clock() {
  Times* const times = all.get();
  if (!times) return;
  const Rules* now;
  {
    const std::lock_guard lock(times->mutex);
    now = &rules();
    if (std::exchange(times->edition, now->edition) == now->edition) return;
  }
  const core::Nanoseconds begin = core::now();
  std::vector<const Rule*> timed;
  for (const Rule& rule : now->list)
    if (rule.event == Event::kTime) timed.push_back(&rule);
  tell_of_absent(timed);
  // The first one first, whatever has passed already.
  std::ranges::stable_sort(timed, {}, &Rule::at);
  for (const Rule* const rule : timed)
    later(begin + rule->at, [rule, edition = now->edition] {
      if (rules().edition == edition) happen(*rule);
    });
}

void let_ports_go() {
  Times* const times = all.get();
  if (!times) return;
  std::vector<const Rule*> rules;
  {
    const std::lock_guard lock(times->mutex);
    for (const auto& [device, holds] : times->down)
      for (const Downtime& each : holds) rules.push_back(each.rule);
  }
  for (const Rule* const rule : rules) lift(*rule);
}

}  // namespace uiw::faults
