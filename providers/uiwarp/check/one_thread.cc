// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "check/one_thread.h"

namespace uiw::check {

Thread this_thread() {
  static std::atomic<Thread> last{0};
  thread_local const Thread mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

std::optional<OneAtATime::Within> OneAtATime::enter(Thread thread, const Stack& where) {
  const std::lock_guard lock(mutex_);
  if (within_.thread != 0) return within_;
  within_ = {thread, where};
  return {};
}

void OneAtATime::leave(Thread thread) {
  const std::lock_guard lock(mutex_);
  if (within_.thread == thread) within_.thread = 0;
}

void Section::begin(Thread thread, const Stack& where) {
  const std::lock_guard lock(mutex_);
  owner_.store(thread, std::memory_order_relaxed);
  begun_ = where;
  has_other_ = false;
}

Section::Fault Section::call(Thread thread, const Stack& where) {
  const std::lock_guard lock(mutex_);
  const Thread owner = owner_.load(std::memory_order_relaxed);
  if (owner == 0) return {Step::kOutside, {}, {}};
  // It may have been handed over.
  if (owner != thread) {
    other_ = where;
    has_other_ = true;
    return {};
  }
  return has_other_ ? Fault{Step::kMixed, begun_, other_} : Fault{};
}

Thread Section::end() {
  const std::lock_guard lock(mutex_);
  return owner_.exchange(0, std::memory_order_relaxed);
}

std::optional<Stack> Section::open() const {
  const std::lock_guard lock(mutex_);
  if (owner_.load(std::memory_order_relaxed) == 0) return {};
  return begun_;
}

}  // namespace uiw::check
