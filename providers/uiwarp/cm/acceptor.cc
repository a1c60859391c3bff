// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/acceptor.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "cm/manager.h"
#include "core/log.h"
#include "core/raw_sys.h"
#include "core/strangers.h"
#include "transport/addresses.h"

namespace uiw::cm {

namespace {

// Of the time that a whole Request may take: what its sender has for itself where others wait, a
// fifth of a second unless set. A program that connects thousands of times needs less before it
// sends the first one, and longer would be longer to wait behind a flood of silent connections.
constexpr uint32_t kPatienceShare = 25;
constexpr uint32_t kMostHalfOpen = 8192;  // 22 MiB

// How many of those that have not said anything are asked whether they just have, so that Requests
// are offered in the order in which their connections came. Each costs a system call, and strangers
// who stay silent are not to make every Request cost thousands.
constexpr int kLooks = 64;

}  // namespace

Acceptor::Acceptor(Manager& manager, engine::Engine& engine, int listen_fd,
                   const device::Device* device)
    : Endpoint(manager, engine), fd_(listen_fd), device_(device), max_half_open_(max_half_open()) {}

Acceptor::~Acceptor() {
  if (fd_ >= 0) core::sys::close(fd_);
  // Before it goes: each takes itself out of the list.
  listener_.reset();
  while (Responder* responder = half_open_.first()) responder->close();
}

uint32_t Acceptor::max_half_open() {
  constexpr uint32_t kPart = 2;
  return core::share_of_descriptors(kPart, kMostHalfOpen);
}

void Acceptor::carry_out(uint32_t orders) {
  if (orders & kOffer) offer();
  if (orders & kStart) listen();
}

void Acceptor::join(Responder& responder) {
  half_open_.append(responder);
}

void Acceptor::leave(Responder& responder) {
  if (responder.complete()) --complete_;
  half_open_.remove(responder);
  if (full_ && listener_) make_room();
}

void Acceptor::request_came() {
  ++complete_;
  offer_soon();
}

void Acceptor::offer_soon() {
  std::lock_guard hold(manager_.lock());
  order(kOffer);
}

void Acceptor::offer() {
  int looks = kLooks;
  for (Responder *responder = half_open_.first(), *next; complete_ > 0; responder = next) {
    next = HalfOpen::next(*responder);
    if (responder->complete()) {
      responder->offer();
    } else if (looks > 0 && (--looks, responder->has_unread())) {
      return offer_soon();  // its octets are the engine's next
    }
  }
}

void Acceptor::listen() {
  core::Result<std::unique_ptr<transport::Listener>> listener =
      transport::Listener::start(engine_, fd_, kTcpQueue, *this);
  if (!listener) {
    // Peers whom TCP has let in hear that nobody is here.
    core::sys::close(std::exchange(fd_, -1));
    on_accept_error(listener.error());
    return;
  }
  listener_ = std::move(*listener);
  fd_ = -1;
}

void Acceptor::on_accept(int fd, const sockaddr_storage&) {
  Responder::start(*this, manager_, engine_, fd, device_);
  if (half_open_.size() >= max_half_open_) make_room();
}

// A peer in good faith sends its Request at once. But of many that connect at the same time, all
// are there before the first one gets to do so.
void Acceptor::make_room() {
  if (half_open_.size() >= max_half_open_) {
    const core::Nanoseconds patience =
        manager_.settings().request_timeout_ms * core::kMillisecond / kPatienceShare;
    Responder& oldest = *half_open_.first();
    const core::Nanoseconds left =
        oldest.complete() ? patience : oldest.came_at() + patience - engine_.now();
    if (left > 0) {
      if (!std::exchange(full_, true)) listener_->pause();
      engine_.arm(oldest_overdue_, left);
      return;
    }
    oldest.close();  // comes here again if the listener is paused
  }
  engine_.disarm(oldest_overdue_);
  if (std::exchange(full_, false)) listener_->resume();
}

void Acceptor::on_accept_error(int error) {
  core::log(
      core::LogLevel::kError,
      "a listening rdma_cm id takes no connections any more (%s); destroy it and listen again",
      std::strerror(error));
}

}  // namespace uiw::cm
