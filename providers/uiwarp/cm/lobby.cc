// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/lobby.h"

#include <algorithm>

#include "core/strangers.h"

namespace uiw::cm {
namespace {

// Of the time that a whole Request may take: what its sender has for itself where others wait, a
// fifth of a second unless set. A program that connects thousands of times needs less before it
// sends the first one, and longer would be longer to wait behind a flood of silent connections.
constexpr uint32_t kPatienceShare = 25;

// When one acceptor may go on, the next one looks so much later what is left. The first has
// accepted by then, so that a flood at one listener does not take all that comes free.
constexpr core::Nanoseconds kInTurn = core::kMillisecond;

}  // namespace

void Lobby::measure() {
  const auto relaxed = std::memory_order_relaxed;
  at_listeners_.store(core::number_of_descriptors(core::kAtListeners), relaxed);
  most_not_fetched_.store(core::number_of_descriptors(core::kNotFetched), relaxed);
  least_not_told_.store(core::number_of_descriptors(core::kNotTold), relaxed);
}

size_t Lobby::most() const {
  const uint32_t all = at_listeners_.load(std::memory_order_relaxed);
  const uint32_t told = std::min(all, not_fetched_.load(std::memory_order_relaxed));
  return std::max(all - told, least_not_told_.load(std::memory_order_relaxed));
}

bool Lobby::admit(Acceptor& acceptor, engine::Engine& engine) {
  engine_ = &engine;
  if (make_room()) return true;
  waiting_.append(acceptor);
  acceptor.pause();
  return false;
}

void Lobby::forget(Acceptor& acceptor) {
  if (!acceptor.paused()) return;
  waiting_.remove(acceptor);
  if (waiting_.empty()) engine_->disarm(next_);
}

void Lobby::leave(Responder& responder) {
  all_.remove(responder);
  if (!waiting_.empty()) engine_->arm(next_, 0);
}

// A peer in good faith sends its Request at once. But of many that connect at the same time, all
// are there before the first one gets to do so. False: comes again when the oldest has had its
// time.
bool Lobby::make_room() {
  const core::Nanoseconds patience =
      settings_.request_timeout_ms * core::kMillisecond / kPatienceShare;
  while (all_.size() >= most()) {
    Responder& oldest = *all_.first();
    const core::Nanoseconds left =
        oldest.complete() ? patience : oldest.came_at() + patience - engine_->now();
    if (left > 0) {
      engine_->arm(next_, left);
      return false;
    }
    oldest.close();
  }
  return true;
}

void Lobby::go_on() {
  if (waiting_.empty() || !make_room()) return;
  Acceptor& first = *waiting_.first();
  waiting_.remove(first);
  first.resume();
  if (waiting_.empty()) {
    engine_->disarm(next_);
  } else {
    engine_->arm(next_, kInTurn);
  }
}

bool Lobby::may_queue(uint32_t of_this_listener) const {
  const uint32_t most = most_not_fetched_.load(std::memory_order_relaxed);
  const uint32_t now = not_fetched_.load(std::memory_order_relaxed);
  return now < most && of_this_listener < 3 * (most - now);
}

void Lobby::queued() {
  not_fetched_.fetch_add(1, std::memory_order_relaxed);
}

void Lobby::fetched() {
  not_fetched_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace uiw::cm
