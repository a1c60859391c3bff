// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A UDP socket that is received from: by the engine, but while it is paused. Frees itself.
#pragma once

#include <cstdint>
#include <span>

#include "core/unshared_descriptor.h"
#include "datagram/socket.h"
#include "engine/engine.h"

namespace uiw::datagram {

class Intake : private Receiver, private engine::Op, private engine::Task {
 public:
  // From the next turn of the engine on. Thread: any, once.
  void begin() { engine_.post(*this); }
  // Nothing arrives any more when this returns, if nobody receives now; the address of the socket
  // is free unless the kernel keeps it for a moment. Thread: engine.
  void close();

  // Receives what there is, several datagrams at a time; true when some came. Thread: any, with a
  // buffer of its own.
  bool receive_now(std::span<uint8_t> buffer);

  int fd() const { return socket_.get(); }

 protected:
  Intake(engine::Engine& engine, int fd) : engine_(engine), socket_(fd) {}
  virtual ~Intake() = default;
  engine::Engine& engine() const { return engine_; }

  // The engine receives no more until resume(). Thread: engine.
  void pause();
  void resume();

  // After the engine has received so many bytes.
  virtual void on_received(uint64_t) {}

 private:
  void run() override;
  void complete(int result, core::Bytes) override;

  engine::Engine& engine_;
  core::UnsharedDescriptor socket_;
  // Thread: engine.
  bool begun_ = false, paused_ = false, closed_ = false;
};

}  // namespace uiw::datagram
