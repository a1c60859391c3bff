// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/acceptor.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "cm/admission_control.h"
#include "cm/manager.h"
#include "core/log.h"

namespace uiw::cm {

namespace {

// How many silent connections are checked for unread bytes before a later connection's Request is
// offered, so that Requests are offered in the order of the connections. Each check costs a system
// call, and silent connections must not make every Request cost thousands.
constexpr int kLooks = 64;

}  // namespace

Acceptor::Acceptor(Manager& manager, engine::Engine& engine,
                   std::unique_ptr<transport::Listener> listener, Service service,
                   const device::Device* device)
    : Endpoint(manager, engine),
      service_(service),
      device_(device),
      listener_(std::move(listener)) {}

Acceptor::~Acceptor() {
  manager_.admission().forget(*this);
  // Before half_open_ is destroyed: each responder takes itself out of that list.
  listener_.reset();
  while (Responder* responder = half_open_.first()) responder->close();
}

void Acceptor::carry_out(uint32_t orders) {
  if (orders & kOffer) offer();
  if (orders & kStart) listener_->begin(engine_, *this);
}

void Acceptor::join(Responder& responder) {
  half_open_.append(responder);
  manager_.admission().enter(responder);
}

void Acceptor::leave(Responder& responder) {
  if (responder.complete()) --complete_;
  half_open_.remove(responder);
  manager_.admission().leave(responder);
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
      return offer_soon();  // the engine receives its bytes next
    }
  }
}

void Acceptor::on_accept(int fd, const sockaddr_storage&) {
  Responder::start(*this, manager_, engine_, fd, device_);
}

bool Acceptor::has_room() {
  return manager_.admission().admit(*this, engine_);
}

void Acceptor::pause() {
  paused_ = true;
  listener_->pause();
}

void Acceptor::resume() {
  paused_ = false;
  listener_->resume();
}

void Acceptor::on_accept_error(int error) {
  core::log(
      core::LogLevel::kError,
      "a listening rdma_cm id takes no connections any more (%s); destroy it and listen again",
      std::strerror(error));
}

}  // namespace uiw::cm
