// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Which rule meets an event. Events are counted in scopes, and what is left to chance is computed
// from the seed, the rule, the scope and the count, so that neither threads nor time have a say:
// the same events of a queue pair meet the same rules in every run. Pure.
#pragma once

#include <optional>
#include <vector>

#include "faults/rules.h"

namespace uiw::faults {

struct Hit {
  const Rule* rule;
  uint64_t number;          // which of the rule's events in this scope, from 1
  core::Nanoseconds delay;  // of kDelay and kPace
};

// The events of one scope. Thread: one at a time.
class Stream {
 public:
  // `ordinal`: which queue pair, or completion queue, of the process this is.
  Stream(Scope scope, uint64_t ordinal) : scope_(scope), ordinal_(ordinal) {}

  // Something whose scope is ours happens: the first rule that meets it.
  // Each rule counts all events that it is for, also those that another rule has met. Of
  // rules of another edition than before nothing is counted yet.
  std::optional<Hit> next(const Rules& rules, const Occasion& happens);
  std::optional<Hit> next(const Rules& rules, Event event) { return next(rules, {.event = event}); }
  // What these rules have counted last of its kind did not happen after all: the next one is
  // counted, and meets, as it did. Nothing, when other rules count by now.
  void take_back(const Rules& rules, const Occasion& happened);

 private:
  // Of 64 bits; `draw` tells several of one event and rule apart.
  uint64_t chance(uint64_t seed, size_t rule, uint64_t number, uint64_t draw) const;
  bool meets(const Rules& rules, size_t index, uint64_t number) const;

  Scope scope_;
  uint64_t ordinal_;
  std::vector<uint64_t> counts_;  // of each rule of this edition
  uint64_t edition_ = 0;
};

}  // namespace uiw::faults
