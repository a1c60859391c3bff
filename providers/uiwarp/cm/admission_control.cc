// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/admission_control.h"

#include <algorithm>

#include "core/descriptor_shares.h"

namespace uiw::cm {
namespace {

// While others wait, a connection has this fraction of the time limit of a Request: a fifth of a
// second by default. A program that makes thousands of connections sends its first Request sooner.
// A longer time would delay others behind a flood of silent connections.
constexpr uint32_t kRequestTimeShare = 25;

// The time between resuming one acceptor and the next. The first has accepted by then, so a flood
// at one listener does not take all the room.
constexpr core::Nanoseconds kBetweenAcceptors = core::kMillisecond;

}  // namespace

void AdmissionControl::measure() {
  const auto relaxed = std::memory_order_relaxed;
  at_listeners_.store(core::number_of_descriptors(core::kAtListeners), relaxed);
  most_not_fetched_.store(core::number_of_descriptors(core::kNotFetched), relaxed);
  least_not_told_.store(core::number_of_descriptors(core::kNotTold), relaxed);
}

size_t AdmissionControl::most() const {
  const uint32_t all = at_listeners_.load(std::memory_order_relaxed);
  const uint32_t told = std::min(all, not_fetched_.load(std::memory_order_relaxed));
  return std::max(all - told, least_not_told_.load(std::memory_order_relaxed));
}

bool AdmissionControl::admit(Acceptor& acceptor, engine::Engine& engine) {
  engine_ = &engine;
  if (make_room()) return true;
  waiting_.append(acceptor);
  acceptor.pause();
  return false;
}

void AdmissionControl::forget(Acceptor& acceptor) {
  if (!acceptor.paused()) return;
  waiting_.remove(acceptor);
  if (waiting_.empty()) engine_->disarm(next_);
}

void AdmissionControl::leave(Responder& responder) {
  all_.remove(responder);
  if (!waiting_.empty()) engine_->arm(next_, 0);
}

// A legitimate peer sends its Request at once. But when many connect at the same time, all are
// accepted before the first Request arrives. False: the timer calls again when the oldest has used
// up its time.
bool AdmissionControl::make_room() {
  const core::Nanoseconds time_limit =
      settings_.request_timeout_ms * core::kMillisecond / kRequestTimeShare;
  while (all_.size() >= most()) {
    Responder& oldest = *all_.first();
    const core::Nanoseconds left =
        oldest.complete() ? time_limit : oldest.came_at() + time_limit - engine_->now();
    if (left > 0) {
      engine_->arm(next_, left);
      return false;
    }
    oldest.close();
  }
  return true;
}

void AdmissionControl::go_on() {
  if (waiting_.empty() || !make_room()) return;
  Acceptor& first = *waiting_.first();
  waiting_.remove(first);
  first.resume();
  if (waiting_.empty()) {
    engine_->disarm(next_);
  } else {
    engine_->arm(next_, kBetweenAcceptors);
  }
}

bool AdmissionControl::may_queue(uint32_t of_this_listener) const {
  const uint32_t most = most_not_fetched_.load(std::memory_order_relaxed);
  const uint32_t now = not_fetched_.load(std::memory_order_relaxed);
  return now < most && of_this_listener < 3 * (most - now);
}

void AdmissionControl::queued() {
  not_fetched_.fetch_add(1, std::memory_order_relaxed);
}

void AdmissionControl::fetched() {
  not_fetched_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace uiw::cm
