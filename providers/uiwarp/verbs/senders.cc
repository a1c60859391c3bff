// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/senders.h"

#include "core/pause.h"
#include "core/tuning.h"

namespace uiw::verbs {

void Senders::add(Member& member, session::QueuePair& queue_pair) {
  const std::lock_guard lock(mutex_);
  member.queue_pair = &queue_pair;
  members_.append(member);
}

void Senders::begin_to_leave(Member& member) {
  const std::lock_guard lock(mutex_);
  member.queue_pair = nullptr;
}

void Senders::leave(Member& member) {
  const std::lock_guard lock(mutex_);
  members_.remove(member);
}

bool Senders::let_go_of(uint32_t stag, bool now) {
  const core::Nanoseconds end = core::now() + core::tuning::kLastSends;
  for (uint64_t wait = 0;;) {
    {
      const std::lock_guard lock(mutex_);
      if (wait == 0) wait = ++waits_;
      bool all = true;
      for (Member* one = members_.first(); one; one = members_.next(*one)) {
        // Only members that were busy are asked again.
        if (one->has_let_go == wait) continue;
        if (one->queue_pair && one->queue_pair->lets_go_of(stag, now))
          one->has_let_go = wait;
        else
          all = false;
      }
      if (all) return true;
    }
    if (core::now() >= end) return false;
    core::sleep_until(core::now() + core::tuning::kNap);
  }
}

}  // namespace uiw::verbs
