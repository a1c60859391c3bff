// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "faults/stream.h"

#include "core/chance.h"

namespace uiw::faults {

uint64_t Stream::chance(uint64_t seed, size_t rule, uint64_t number, uint64_t draw) const {
  return core::chance(seed, {static_cast<uint64_t>(scope_), ordinal_, rule, number, draw});
}

bool Stream::meets(const Rules& rules, size_t index, uint64_t number) const {
  const Rule& rule = rules.list[index];
  switch (rule.when) {
    case When::kAlways:
      return true;
    case When::kNth:
      return number == rule.number;
    case When::kEvery:
      return number % rule.number == 0;
    case When::kProbability:
      // 53 bits are what a double holds.
      return static_cast<double>(chance(rules.seed, index, number, 0) >> 11) * 0x1p-53 <
             rule.probability;
  }
  return false;
}

std::optional<Hit> Stream::next(const Rules& rules, const Occasion& happens) {
  if (counts_.size() != rules.list.size() || edition_ != rules.edition) {
    counts_.assign(rules.list.size(), 0);
    edition_ = rules.edition;
  }
  std::optional<Hit> hit;
  for (size_t i = 0; i < rules.list.size(); ++i) {
    const Rule& rule = rules.list[i];
    if (!rule.is_for(happens)) continue;
    const uint64_t number = ++counts_[i];
    if (hit || !meets(rules, i, number)) continue;
    hit = Hit{&rule, number, rule.least};
    if (rule.most > rule.least)
      hit->delay += static_cast<core::Nanoseconds>(
          chance(rules.seed, i, number, 1) % static_cast<uint64_t>(rule.most - rule.least + 1));
  }
  return hit;
}

void Stream::take_back(const Rules& rules, const Occasion& happened) {
  if (edition_ != rules.edition || counts_.size() != rules.list.size()) return;
  for (size_t i = 0; i < counts_.size(); ++i)
    if (rules.list[i].is_for(happened) && counts_[i] > 0) --counts_[i];
}

}  // namespace uiw::faults
