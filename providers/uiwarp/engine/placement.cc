// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/placement.h"

namespace uiw::engine {

Placement::Kind Placement::kind(uint32_t sleeps) const {
  const uint64_t per_turn = octets_ / (turns_ > 0 ? turns_ : 1);
  if (per_turn > kStreamOctets) return Kind::kStream;
  if (per_turn > kLatencyOctets) return sleeps <= kStreamSleeps ? Kind::kStream : Kind::kBetween;
  return sleeps >= kLatencySleeps ? Kind::kLatency : Kind::kBetween;
}

Placement::Decision Placement::judge(uint32_t sleeps, int incoming_cpu) {
  const Kind traffic = kind(sleeps);
  turns_ = 0;
  octets_ = 0;

  if (traffic == Kind::kStream) {
    agreeing_ = 0;
    candidate_ = -1;
    if (cpu_ < 0 || ++streaming_ < kAgreeing) return {};
    streaming_ = 0;
    cpu_ = -1;
    return {Action::kRelease, -1};
  }
  streaming_ = 0;
  if (traffic == Kind::kBetween || incoming_cpu < 0) return {};

  if (incoming_cpu == cpu_ || incoming_cpu == refused_) {
    agreeing_ = 0;
    candidate_ = -1;
    return {};
  }
  // The first move may be made at once; leaving a place for another needs agreement, so that two
  // connections with different CPUs do not throw the thread back and forth.
  if (incoming_cpu != candidate_) {
    candidate_ = incoming_cpu;
    agreeing_ = 0;
  }
  if (++agreeing_ < kAgreeing && cpu_ >= 0) return {};
  agreeing_ = 0;
  candidate_ = -1;
  cpu_ = incoming_cpu;
  return {Action::kMove, incoming_cpu};
}

void Placement::move_failed(int cpu) {
  refused_ = cpu;
  cpu_ = -1;
}

}  // namespace uiw::engine
