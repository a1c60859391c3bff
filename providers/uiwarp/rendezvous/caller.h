// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The side of a meeting that connects. The peer may not be there yet, or not expect us yet: it
// calls again until it is told to stop, or has proven the PSNs to somebody who did not (proof.h).
// Thread: engine.
#pragma once

#include <memory>

#include "rendezvous/proof.h"
#include "startup/frames.h"
#include "transport/listener.h"

namespace uiw::rendezvous {

class Answered {
 public:
  // The peer has accepted, and proven that it is the peer; `leftover` are octets behind its Reply.
  // Called once; may destroy the caller.
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
  Caller(engine::Engine& engine, const Name& own, const Name& peer, const Psns& psns,
         unsigned ifindex, uint16_t ird, Answered& answered);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Not from the constructor: the first attempt may fail at once.
  void begin() { dial(); }
  // The queue pair went to RTS.
  void know_own_psn(uint32_t psn);
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

  enum class Step {
    kPausing,     // before the next attempt
    kConnecting,  // TCP's handshake
    kGreeted,     // hello was said, the challenge is to come
    kProven,      // the proof was given, the opening is to come
    kStopped,     // it did not come: never again
  };
  void dial();
  void request(MessageType type, const core::SipKey& value);
  void send_request();
  void prove(const mpa::StartupFrame& reply, core::Bytes behind);
  void finish(const mpa::StartupFrame& reply, core::Bytes behind);
  std::optional<HandshakeMessage> said_by_peer(const mpa::StartupFrame& reply,
                                               MessageType type) const;
  Introduction introduction() const;
  void call_again();
  void call_again_after(const char* trouble);
  void stop();

  engine::Engine& engine_;
  const Name own_, peer_;
  Psns psns_;
  const unsigned ifindex_;
  const uint16_t ird_;
  Answered& answered_;
  core::Nanoseconds pause_;
  Step step_ = Step::kPausing;
  const char* trouble_;
  std::unique_ptr<transport::Connector> connector_;
  transport::StreamPtr stream_;
  mpa::Wishes wishes_;
  mpa::StartupFrame request_;
  // Of this attempt.
  Stage own_stage_ = Stage::kRtr, peer_stage_ = Stage::kRtr;
  uint64_t nonce_ = 0, secret_ = 0, commitment_ = 0;
  startup::Outbox outbox_;
  startup::FrameCollector collector_;
};

}  // namespace uiw::rendezvous
