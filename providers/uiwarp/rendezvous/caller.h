// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The side of a meeting that connects. The peer may not be there yet, or not expect us yet: it
// calls again until it is told to stop. Thread: engine.
#pragma once

#include <memory>

#include "rendezvous/greeting.h"
#include "startup/frames.h"
#include "transport/listener.h"

namespace uiw::rendezvous {

class Answered {
 public:
  // The peer has accepted; `leftover` are octets behind its Reply. Called once; may destroy the
  // caller.
  virtual void on_answer(transport::StreamPtr stream, const mpa::Agreement& agreement,
                         core::Bytes leftover) = 0;

 protected:
  ~Answered() = default;
};

class Caller final : private transport::ConnectHandler,
                     private transport::StreamHandler,
                     private engine::Timer {
 public:
  // `ird`: Reads and atomics that the peer may have outstanding.
  Caller(engine::Engine& engine, const Greeting& greeting, unsigned ifindex, uint16_t ird,
         Answered& answered);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Not from the constructor: the first attempt may fail at once.
  void begin() { dial(); }
  // Why the peer is not reached yet, for people.
  const char* trouble() const { return trouble_; }

 private:
  void on_connected(int fd) override;
  void on_connect_failed(int error) override;
  void on_octets(core::Bytes octets) override;
  void on_end_of_stream() override;
  void on_error(int error) override;
  void on_writable() override;
  void expire() override;

  void dial();
  void send_request();
  void call_again();
  void call_again_after(const char* trouble);

  engine::Engine& engine_;
  const Greeting greeting_;
  const unsigned ifindex_;
  const uint16_t ird_;
  Answered& answered_;
  core::Nanoseconds pause_;
  bool pausing_ = false;
  const char* trouble_;
  std::unique_ptr<transport::Connector> connector_;
  transport::StreamPtr stream_;
  mpa::Wishes wishes_;
  mpa::StartupFrame request_;
  startup::Outbox outbox_;
  startup::FrameCollector collector_;
};

}  // namespace uiw::rendezvous
