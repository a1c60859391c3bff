// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/intake.h"

#include <utility>

#include "core/assert.h"
#include "core/raw_sys.h"
#include "core/tuning.h"

namespace uiw::datagram {

Intake::~Intake() {
  if (fd_ >= 0) core::sys::close(fd_);
}

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
  if (fd_ >= 0 && engine_.flush()) core::sys::close(std::exchange(fd_, -1));
}

void Intake::pause() {
  paused_ = true;
  if (in_flight()) engine_.cancel(*this);
}

// What was cancelled may still have to end: complete() goes on then.
void Intake::resume() {
  paused_ = false;
  if (!in_flight()) engine_.poll_readable(*this, fd_);
}

bool Intake::receive_now(std::span<uint8_t> buffer) {
  uint64_t bytes = 0;
  receive(fd_, buffer, *this, bytes);
  return bytes > 0;
}

void Intake::complete(int result, core::Bytes) {
  if (closed_) return close();
  if (paused_) return;
  uint64_t bytes = 0;
  Received received = result < 0 ? Received::kAll : Received::kSome;
  for (int i = 0; i < core::tuning::kDatagramReceives && received == Received::kSome; ++i)
    received = receive(fd_, engine_.scratch(), *this, bytes);
  engine_.received_directly(bytes);
  on_received(bytes);
  if (!paused_) resume();
}

}  // namespace uiw::datagram
