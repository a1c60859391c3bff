// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/late.h"

#include <algorithm>
#include <utility>

#include "core/assert.h"

namespace uiw::datagram {

bool Late::add(const Arrival& arrival, core::Nanoseconds delay) {
  std::optional<Kept> kept = Kept::copy(arrival);
  if (!kept) return false;
  const core::Nanoseconds due = core::now() + delay;
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMost) return false;
  const auto place = waiting_.emplace(due, *std::move(kept));
  // The timer is the engine's to arm.
  if (place == waiting_.begin() && !std::exchange(is_posted_, true)) engine_.post(*this);
  return true;
}

void Late::clear() {
  const std::lock_guard lock(mutex_);
  waiting_.clear();
}

void Late::end() {
  UIW_ASSERT(engine_.on_engine_thread());
  clear();
  engine_.disarm(*this);
}

void Late::run() {
  const std::lock_guard lock(mutex_);
  is_posted_ = false;
  arm();
}

// mutex_ is held.
void Late::arm() {
  if (!waiting_.empty())
    engine_.arm(*this, std::max(waiting_.begin()->first - core::now(), core::Nanoseconds{0}));
}

void Late::expire() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() && waiting_.begin()->first <= core::now()) {
    const auto due = waiting_.extract(waiting_.begin());
    lock.unlock();
    receiver_.on_arrival(due.mapped().arrival());
    lock.lock();
  }
  arm();
}

}  // namespace uiw::datagram
