// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/stand_in.h"

#include <utility>

#include "cm/first_fpdu.h"
#include "transport/lingering_close.h"

namespace uiw::cm {

StandIn::StandIn(engine::Engine& engine, StreamPtr stream, const mpa::Agreement& agreement,
                 core::Nanoseconds close_time, session::ConnectionObserver& observer)
    : engine_(engine),
      stream_(std::move(stream)),
      close_time_(close_time),
      observer_(observer),
      sending_(agreement.initiator && agreement.rtr != mpa::Rtr::kNone) {
  stream_->set_handler(nullptr);
  if (sending_) set_rtr(outbox_, agreement);
}

void StandIn::receive() {
  if (stream_ == nullptr) return;
  stream_->set_handler(this);
  if (sending_) send();
}

// Errors of the stream are ignored here: the engine reports them.
void StandIn::send() {
  const int error = outbox_.flush(*stream_);
  if (error == EAGAIN) return stream_->want_writable();
  sending_ = false;
  if (error == 0) tell_first();
}

void StandIn::on_octets(core::Bytes) {
  tell_first();
}

void StandIn::tell_first() {
  if (!std::exchange(first_told_, true)) observer_.on_first_fpdu();
}

void StandIn::disconnect() {
  if (stream_ == nullptr) return;
  stream_->shutdown_write();
  engine_.arm(deadline_, close_time_);
}

void StandIn::leave() {
  if (stream_ != nullptr)
    transport::lingering_close(engine_, std::move(stream_), close_time_,
                               engine::Standing::kUnauthenticated, outbox_.take_rest());
}

void StandIn::end(int error) {
  stream_.reset();
  engine_.disarm(deadline_);
  observer_.on_connection_ended(error);
}

}  // namespace uiw::cm
