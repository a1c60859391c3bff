// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Connects to the peer of a queue pair that is connected by number: the MPA initiator. The peer may
// not listen yet, or not expect this queue pair yet. So it retries until it is destroyed, or until
// it has sent its proof to a responder that then did not prove to be the peer (proof.h). Thread:
// engine.
#pragma once

#include <memory>

#include "rendezvous/proof.h"
#include "startup/frames.h"
#include "transport/listener.h"

namespace uiw::rendezvous {

class PeerConnectHandler {
 public:
  // The peer has accepted, and has proven that it is the peer. `leftover`: bytes behind its Reply.
  // Called once; may destroy the PeerConnector.
  virtual void on_peer_connected(transport::StreamPtr stream, const mpa::Agreement& agreement,
                                 core::Bytes leftover) = 0;

 protected:
  ~PeerConnectHandler() = default;
};

class PeerConnector final : private transport::ConnectHandler,
                            private transport::StreamHandler,
                            private engine::Timer {
 public:
  // `ird`: Reads and atomics that the peer may have outstanding. `service`: of both ends.
  PeerConnector(engine::Engine& engine, const Name& own, const Name& peer, const Psns& psns,
                unsigned ifindex, uint16_t ird, core::Service service, PeerConnectHandler& handler);
  ~PeerConnector();
  PeerConnector(const PeerConnector&) = delete;
  PeerConnector& operator=(const PeerConnector&) = delete;

  // Not done by the constructor: the first attempt may fail at once.
  void begin() { connect(); }
  // The queue pair went to RTS.
  void set_send_psn(uint32_t psn);
  // Why the peer was not reached yet, for the log.
  const char* problem() const { return problem_; }

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
    kHelloSent,   // the hello was sent; the challenge has not come
    kProofSent,   // the proof was sent; the opening has not come
    kStopped,     // the opening did not come: no more attempts
  };
  void connect();
  void request(MessageType type, const core::SipKey& value);
  void send_request();
  void prove(const mpa::StartupFrame& reply, core::Bytes behind);
  void finish(const mpa::StartupFrame& reply, core::Bytes behind);
  std::optional<HandshakeMessage> message_from_peer(const mpa::StartupFrame& reply,
                                                    MessageType type) const;
  Transcript transcript() const;
  void retry();
  void retry_because(const char* problem);
  void stop();

  engine::Engine& engine_;
  const Name own_, peer_;
  Psns psns_;
  const unsigned ifindex_;
  const uint16_t ird_;
  const core::Service service_;
  PeerConnectHandler& handler_;
  core::Nanoseconds pause_;
  Step step_ = Step::kPausing;
  const char* problem_;
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
