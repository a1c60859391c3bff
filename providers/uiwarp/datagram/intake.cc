// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/intake.h"

#include "core/assert.h"
#include "core/tuning.h"

namespace uiw::datagram {

void Intake::run() {
  begun_ = true;
  if (closed_) return close();
  resume();
}

void Intake::close() {
  UIW_ASSERT(engine_.on_engine_thread());
  closed_ = true;
  if (!begun_) return;  // run() is still to come
  if (!in_flight()) {
    engine_.let_go(*this);
    delete this;
    return;
  }
  engine_.cancel(*this);
  if (socket_.is_open() && engine_.flush()) socket_.close();
}

void Intake::pause() {
  paused_ = true;
  if (in_flight()) engine_.cancel(*this);
}

// What was cancelled may still have to end: complete() goes on then.
void Intake::resume() {
  paused_ = false;
  if (!in_flight()) engine_.poll_readable(*this, fd());
}

bool Intake::receive_now(std::span<uint8_t> buffer) {
  uint64_t bytes = 0;
  receive(fd(), buffer, *this, bytes);
  return bytes > 0;
}

void Intake::complete(int result, core::Bytes) {
  if (closed_) return close();
  if (paused_) return;
  uint64_t bytes = 0;
  Received received = result < 0 ? Received::kAll : Received::kSome;
  for (int i = 0; i < core::tuning::kDatagramReceives && received == Received::kSome; ++i)
    received = receive(fd(), engine_.scratch(), *this, bytes);
  engine_.received_directly(bytes);
  on_received(bytes);
  if (!paused_) resume();
}

}  // namespace uiw::datagram
