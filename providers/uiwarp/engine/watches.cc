// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "engine/watches.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <mutex>
#include <utility>

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
  while (take_due(Backend::kForever)) {
  }
  if (in_flight()) backend_->cancel(*this);
}

void Watches::close() {
  backend_->let_go(*this);
  sys::close(fd_);
}

void Watches::watch(Watch& watch, core::Nanoseconds deadline) {
  {
    const std::lock_guard hold(lock_);
    watch.deadline_ = deadline;
    if (!watch.watched_) {
      watch.watched_ = true;
      watch.previous_ = nullptr;
      watch.next_ = first_;
      if (first_) first_->previous_ = &watch;
      first_ = &watch;
    }
    if (!expiring_) settle();
  }
  wait();
}

void Watches::unwatch(Watch& watch) {
  const std::lock_guard hold(lock_);
  if (watch.watched_) unlink(watch);
}

void Watches::put_off(Watch& watch, core::Nanoseconds deadline) {
  const std::lock_guard hold(lock_);
  if (!watch.watched_) return;
  watch.deadline_ = deadline;
  settle();
}

void Watches::complete(int result, core::Bytes) {
  if (result < 0 || stopped_) return;
  uint64_t times;
  sys::read(fd_, &times, sizeof times);
  const core::Nanoseconds now = core::now();
  expiring_ = true;
  while (Watch* const due = take_due(now)) due->expire();
  expiring_ = false;
  {
    const std::lock_guard hold(lock_);
    set_to_ = Backend::kForever;  // that time has passed
    settle();
  }
  wait();
}

Watch* Watches::take_due(core::Nanoseconds now) {
  const std::lock_guard hold(lock_);
  Watch* due = first_;
  while (due && due->deadline_ > now) due = due->next_;
  if (due) unlink(*due);
  return due;
}

// Leaves the timerfd as it is: an extra wake costs less than setting it each time.
void Watches::unlink(Watch& watch) {
  watch.watched_ = false;
  if (watch.next_) watch.next_->previous_ = watch.previous_;
  (watch.previous_ ? watch.previous_->next_ : first_) = watch.next_;
}

void Watches::settle() {
  core::Nanoseconds earliest = Backend::kForever;
  for (const Watch* watch = first_; watch; watch = watch->next_)
    earliest = std::min(earliest, watch->deadline_);
  if (earliest == Backend::kForever || std::exchange(set_to_, earliest) == earliest) return;
  itimerspec at{};
  at.it_value.tv_sec = earliest / core::kSecond;
  at.it_value.tv_nsec = earliest % core::kSecond;
  sys::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &at);
}

void Watches::wait() {
  if (first_ && !stopped_ && !expiring_ && !in_flight()) backend_->poll_readable(*this, fd_);
}

}  // namespace uiw::engine
