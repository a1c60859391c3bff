// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/endpoint.h"

#include <mutex>
#include <utility>

#include "cm/manager.h"

namespace uiw::cm {

Endpoint::Endpoint(Manager& manager, engine::Engine& engine) : manager_(manager), engine_(engine) {
  // The list has its own lock, as the creator may or may not hold the manager's.
  manager_.endpoint_created(*this);
}

Endpoint::~Endpoint() {
  manager_.endpoint_gone(*this);
}

void Endpoint::order(Order what) {
  orders_ |= what;
  if (queued_) return;
  queued_ = true;
  engine_.post(*this);
}

void Endpoint::run() {
  uint32_t orders;
  bool finished, drop_now;
  {
    std::lock_guard hold(manager_.lock());
    orders = std::exchange(orders_, 0);
    queued_ = false;
    finished = finished_;
    drop_now = (orders & kDrop) && !dropped_;
    dropped_ = dropped_ || drop_now;
  }
  if (finished) {
    delete this;
  } else if (drop_now) {
    drop();
  } else if (orders & ~kDrop) {
    carry_out(orders);
  }
}

void Endpoint::take_over(Endpoint& from) {
  owner = std::exchange(from.owner, nullptr);
  if (owner != nullptr) owner->endpoint = this;
  if (from.orders_ & kDisconnect) order(kDisconnect);
}

void Endpoint::order_again(Order what) {
  std::lock_guard hold(manager_.lock());
  order(what);
}

void Endpoint::finish() {
  bool free_now;
  {
    std::lock_guard hold(manager_.lock());
    if (owner != nullptr) std::exchange(owner, nullptr)->endpoint = nullptr;
    finished_ = true;
    free_now = !queued_;
  }
  if (free_now) delete this;
}

void Endpoint::finish_with(EventType type, int status, const ConnParam* param) {
  {
    std::lock_guard hold(manager_.lock());
    if (owner != nullptr) {
      owner->state = IdState::kEnded;
      manager_.push(*owner, type, status, param);
    }
  }
  finish();
}

}  // namespace uiw::cm
