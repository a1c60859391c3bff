// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/placement.h"

#include <utility>

namespace uiw::engine {

Placement::Kind Placement::kind(uint32_t sleeps, bool ping_pong) const {
  const uint64_t turns = turns_ > 0 ? turns_ : 1, per_turn = (delivered_ + sent_) / turns;
  if (per_turn > kStreamOctets) return Kind::kStream;
  const bool small = delivered_ / turns <= kLatencyOctets;
  if (sleeps >= kLatencySleeps && (small || ping_pong)) return Kind::kLatency;
  return per_turn > kLatencyOctets && sleeps <= kStreamSleeps ? Kind::kStream : Kind::kBetween;
}

bool Placement::unclear(uint32_t sleeps) const {
  return sleeps >= kLatencySleeps && kind(sleeps, false) == Kind::kBetween;
}

Placement::Decision Placement::judge(uint32_t sleeps, int incoming_cpu, bool ping_pong) {
  const Kind traffic = kind(sleeps, ping_pong);
  turns_ = 0;
  delivered_ = sent_ = 0;
  if (rest_ > 0) --rest_;
  if (incoming_cpu < 0 || traffic == Kind::kBetween) return {};
  return want({traffic == Kind::kLatency ? Action::kFollow : Action::kKeepAway, incoming_cpu});
}

Placement::Decision Placement::want(Decision wanted) {
  const bool refused = wanted.action == Action::kFollow && wanted.cpu == refused_;
  if (wanted == place_ || refused) {
    candidate_ = {};
    agreeing_ = 0;
    return {};
  }
  if (!(wanted == std::exchange(candidate_, wanted))) agreeing_ = 0;
  // To follow from where nobody placed it is safe. Else two connections with different CPUs could
  // throw the thread back and forth.
  const bool first = place_.action == Action::kStay && wanted.action == Action::kFollow;
  if (++agreeing_ < kAgreeing && !first) return {};
  // To keep away from one CPU after another would be to race the scheduler.
  if (rest_ > 0 && wanted.action == Action::kKeepAway && place_.action == Action::kKeepAway)
    return {};
  candidate_ = {};
  agreeing_ = 0;
  rest_ = kRest;
  return place_ = wanted;
}

void Placement::follow_failed(int cpu) {
  refused_ = cpu;
  place_ = {};
}

}  // namespace uiw::engine
