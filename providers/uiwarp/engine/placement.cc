// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/placement.h"

#include <utility>

namespace uiw::engine {

namespace tuning = core::tuning;

namespace {

bool mostly_slept(const Placement::Window& window) {
  return window.sleeps + tuning::kFewWakes >= tuning::kPlacementWindow;
}

}  // namespace

Placement::Kind Placement::kind(const Window& window) const {
  const uint64_t turns = turns_ > 0 ? turns_ : 1, per_turn = (delivered_ + sent_) / turns;
  if (per_turn > tuning::kStreamBytes) return Kind::kStream;
  const bool small = delivered_ / turns <= tuning::kLatencyBytes;
  if (mostly_slept(window) && (small || window.ping_pong)) return Kind::kLatency;
  return per_turn > tuning::kLatencyBytes && window.sleeps <= tuning::kFewWakes ? Kind::kStream
                                                                                : Kind::kBetween;
}

bool Placement::unclear(const Window& window) const {
  return mostly_slept(window) && kind(window) == Kind::kBetween;
}

bool Placement::together(const Window& window) const {
  return window.packets_cpu == window.own_cpu && kind(window) == Kind::kStream;
}

Placement::Decision Placement::judge(const Window& window) {
  const Kind traffic = kind(window);
  const bool here = together(window);
  turns_ = 0;
  delivered_ = sent_ = 0;
  if (rest_ > 0) --rest_;
  if (window.packets_cpu < 0 || traffic == Kind::kBetween) return {};
  here_ = here ? here_ + 1 : 0;
  if (here && !window.waited && here_ < tuning::kOwnCpuWindows) return {};
  return want(
      {traffic == Kind::kLatency ? Action::kFollow : Action::kKeepAway, window.packets_cpu});
}

Placement::Decision Placement::want(Decision wanted) {
  const bool refused = wanted.action == Action::kFollow && wanted.cpu == refused_;
  if (wanted == place_ || refused) {
    candidate_ = {};
    agreeing_ = 0;
    return {};
  }
  if (!(wanted == std::exchange(candidate_, wanted))) agreeing_ = 0;
  // The first follow is safe: the thread was not placed yet. Otherwise two connections with
  // different CPUs could move the thread back and forth.
  const bool first = place_.action == Action::kStay && wanted.action == Action::kFollow;
  if (++agreeing_ < tuning::kAgreeingWindows && !first) return {};
  // Do not keep away from one CPU after another: the scheduler moves the other end, too.
  if (rest_ > 0 && wanted.action == Action::kKeepAway && place_.action == Action::kKeepAway)
    return {};
  candidate_ = {};
  agreeing_ = 0;
  rest_ = tuning::kRestWindows;
  here_ = 0;
  return place_ = wanted;
}

void Placement::follow_failed(int cpu) {
  refused_ = cpu;
  place_ = {};
}

}  // namespace uiw::engine
