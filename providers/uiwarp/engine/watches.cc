// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/watches.h"

#include <sys/timerfd.h>

#include <algorithm>

#include "core/raw_sys.h"

namespace uiw::engine {

namespace sys = core::sys;

int Watches::open(Backend& backend) {
  backend_ = &backend;
  fd_ = sys::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  return fd_ < 0 ? -fd_ : 0;
}

void Watches::stop() {
  stopped_ = true;
  while (first_) unwatch(*first_);
  if (in_flight()) backend_->cancel(*this);
}

void Watches::close() {
  backend_->let_go(*this);
  sys::close(fd_);
}

void Watches::watch(Watch& watch, core::Nanoseconds deadline) {
  watch.deadline_.store(deadline, std::memory_order_relaxed);
  if (!watch.watched()) {
    watch.watched_ = true;
    watch.previous_ = nullptr;
    watch.next_ = first_;
    if (first_) first_->previous_ = &watch;
    first_ = &watch;
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  if (!expiring_) settle();
}

// The descriptor stays as it is: once too often costs less than to set it each time.
void Watches::unwatch(Watch& watch) {
  if (!watch.watched()) return;
  watch.watched_ = false;
  if (watch.next_) watch.next_->previous_ = watch.previous_;
  (watch.previous_ ? watch.previous_->next_ : first_) = watch.next_;
  count_.fetch_sub(1, std::memory_order_relaxed);
}

// Of several the engine finds out itself whose is the earliest. Should one have come or gone a
// moment ago, another one's may be put off with this: a look at it comes later then, not never.
void Watches::put_off(Watch& watch, core::Nanoseconds deadline) {
  watch.deadline_.store(deadline, std::memory_order_relaxed);
  if (count_.load(std::memory_order_relaxed) == 1) set(deadline);
}

void Watches::complete(int result, core::Bytes) {
  if (result < 0 || stopped_) return;
  uint64_t times;
  sys::read(fd_, &times, sizeof times);
  const core::Nanoseconds now = core::now();
  expiring_ = true;
  while (Watch* const due = first_due(now)) {
    unwatch(*due);
    due->expire();
  }
  expiring_ = false;
  settle();
}

Watch* Watches::first_due(core::Nanoseconds now) const {
  for (Watch* watch = first_; watch; watch = watch->next_)
    if (watch->deadline_.load(std::memory_order_relaxed) <= now) return watch;
  return nullptr;
}

void Watches::settle() {
  if (!first_ || stopped_) return;
  core::Nanoseconds earliest = Backend::kForever;
  for (const Watch* watch = first_; watch; watch = watch->next_)
    earliest = std::min(earliest, watch->deadline_.load(std::memory_order_relaxed));
  set(earliest);
  if (!in_flight()) backend_->poll_readable(*this, fd_);
}

void Watches::set(core::Nanoseconds deadline) const {
  itimerspec at{};
  at.it_value.tv_sec = deadline / core::kSecond;
  at.it_value.tv_nsec = deadline % core::kSecond;
  sys::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &at);
}

}  // namespace uiw::engine
