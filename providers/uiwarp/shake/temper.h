// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the options decide: for how long completions are held, how many a poll gives, and what
// arming does. By counts of the object's own events, so that the same events meet the same in every
// run. Pure.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "core/shake_options.h"

namespace uiw::shake {

// How the completions of a work queue are held for a while.
enum class Mood : uint8_t {
  kPrompt,    // not at all
  kShort,     // each on its own, for about as long as a poll takes
  kMiddle,    // for about as long as an answer takes
  kLong,      // for as long as anything may be held
  kTogether,  // until the next multiple of some time, when all come at once
};

// What ibv_req_notify_cq() does besides arming.
enum class Arming : uint8_t {
  kPlain,  // nothing
  kLate,   // it takes its time first: what comes meanwhile has come before it, and has no event
  kTold,   // it takes its time afterwards: what comes meanwhile has its event, and may have been
           // polled by then
};
struct ArmingPlan {
  Arming how;
  core::Nanoseconds pause;  // 0 of kPlain
};

// Of the `nth` completion, from 0, of the work queue that has this number.
Mood mood_of(const core::ShakeOptions& options, uint64_t work_queue, uint64_t nth);
// How long it is held that comes at `now`. Less than tuning::kLongestHold.
core::Nanoseconds hold_of(const core::ShakeOptions& options, uint64_t work_queue, uint64_t nth,
                          core::Nanoseconds now);

// Of the `nth` arming, from 0, of the completion queue that has this number.
ArmingPlan arming_of(const core::ShakeOptions& options, uint64_t completion_queue, uint64_t nth);

// How a poll of a completion queue that has given `given` completions before goes about it.
struct PollPlan {
  uint64_t most;   // of those that may wait, at least 1
  uint64_t first;  // whose turn is first, modulo the number of work queues
  uint64_t turn;   // how many of one work queue until it is another's, at least 1
};
PollPlan poll_of(const core::ShakeOptions& options, uint64_t completion_queue, uint64_t given);

}  // namespace uiw::shake
