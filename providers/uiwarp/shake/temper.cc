// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "shake/temper.h"

#include <iterator>
#include <limits>

#include "core/chance.h"
#include "core/tuning.h"

namespace uiw::shake {
namespace {

namespace tuning = core::tuning;
using core::Liberty;
using core::ShakeOptions;

// What is drawn: each has numbers of its own.
enum class Draw : uint64_t { kMood, kHold, kArming, kPause, kMost, kFirst, kTurn };

uint64_t draw(uint64_t seed, Draw what, uint64_t object, uint64_t nth) {
  return core::chance(seed, {static_cast<uint64_t>(what), object, nth});
}

core::Nanoseconds below(core::Nanoseconds limit, uint64_t drawn) {
  return static_cast<core::Nanoseconds>(drawn % static_cast<uint64_t>(limit));
}

}  // namespace

Mood mood_of(const ShakeOptions& options, uint64_t work_queue, uint64_t nth) {
  if (!options.takes(Liberty::kLate)) return Mood::kPrompt;
  // Half of them prompt: what comes late is late beside something.
  constexpr Mood kMoods[] = {Mood::kPrompt, Mood::kPrompt, Mood::kPrompt, Mood::kPrompt,
                             Mood::kShort,  Mood::kMiddle, Mood::kLong,   Mood::kTogether};
  return kMoods[draw(options.seed, Draw::kMood, work_queue, nth / tuning::kMoodCompletions) %
                std::size(kMoods)];
}

core::Nanoseconds hold_of(const ShakeOptions& options, uint64_t work_queue, uint64_t nth,
                          core::Nanoseconds now) {
  const uint64_t drawn = draw(options.seed, Draw::kHold, work_queue, nth);
  switch (mood_of(options, work_queue, nth)) {
    case Mood::kPrompt:
      return 0;
    case Mood::kShort:
      return below(tuning::kShortHold, drawn);
    case Mood::kMiddle:
      return below(tuning::kHold, drawn);
    case Mood::kLong:
      return below(tuning::kLongestHold, drawn);
    case Mood::kTogether:
      return tuning::kGatheringTime - now % tuning::kGatheringTime;
  }
  return 0;
}

ArmingPlan arming_of(const ShakeOptions& options, uint64_t completion_queue, uint64_t nth) {
  if (!options.takes(Liberty::kArming)) return {Arming::kPlain, 0};
  const core::Nanoseconds pause =
      below(tuning::kLongestArming, draw(options.seed, Draw::kPause, completion_queue, nth));
  switch (draw(options.seed, Draw::kArming, completion_queue, nth) % 4) {
    case 0:
      return {Arming::kLate, pause};
    case 1:
      return {Arming::kTold, pause};
    default:
      return {Arming::kPlain, 0};
  }
}

PollPlan poll_of(const ShakeOptions& options, uint64_t completion_queue, uint64_t given) {
  const uint64_t most = draw(options.seed, Draw::kMost, completion_queue, given);
  const bool few = most % 2 != 0 && options.takes(Liberty::kBatches);
  return {few ? 1 + most / 2 % tuning::kFewCompletions : std::numeric_limits<uint64_t>::max(),
          draw(options.seed, Draw::kFirst, completion_queue, given),
          1 + draw(options.seed, Draw::kTurn, completion_queue, given) % tuning::kTurn};
}

}  // namespace uiw::shake
