// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How a queue pair finds the peer that ibv_modify_qp named: of the two names the smaller waits at
// its listener, the greater calls. Each has to prove that it knows the PSNs that both programs set.
// A queue pair that was given its own name gets a TCP connection to itself. Nobody else is needed,
// no daemon and no third connection. Thread: engine, all of it.
#pragma once

#include <memory>

#include "rendezvous/peer_connector.h"
#include "rendezvous/qpn_listener.h"
#include "session/queue_pair.h"

namespace uiw::rendezvous {

struct Appointment {
  Name own, peer;
  unsigned ifindex = 0;  // of our device, for link-local addresses
  uint16_t ird = 0;      // max_dest_rd_atomic
  uint32_t rq_psn = 0;   // what the peer has as sq_psn
};

class Meeting final : private PendingPeerHandler,
                      private PeerConnectHandler,
                      private transport::ConnectHandler,
                      private engine::Timer,
                      private session::ConnectionObserver {
 public:
  // Makes ready; nothing happens before begin(). Must go before the queue pair does, and before the
  // number is given back. Errno: EADDRINUSE, ENOMEM, EADDRNOTAVAIL (own address, or a number
  // without a port, see verbs/registry.h).
  static core::Result<std::unique_ptr<Meeting>> arrange(engine::Engine& engine,
                                                        session::QueuePair& queue_pair,
                                                        const Appointment& appointment);
  ~Meeting();

  void begin();
  // The queue pair went to RTS. From now on what is posted waits for the peer for `patience`, or a
  // quarter longer; then it fails with IBV_WC_RETRY_EXC_ERR. 0: waits for ever.
  void hurry(uint32_t sq_psn, core::Nanoseconds patience);

 private:
  Meeting(engine::Engine& engine, session::QueuePair& queue_pair, const Appointment& appointment)
      : engine_(engine),
        queue_pair_(queue_pair),
        appointment_(appointment),
        psns_{.receive = appointment.rq_psn, .send = {}} {}
  int make_ready();
  void give_up();
  bool may_challenge();
  void tell_of_wrong_proof(const HandshakeMessage& hello);
  void join(transport::StreamPtr stream, const mpa::Agreement& agreement, core::Bytes leftover);

  bool on_hello(PendingPeer& peer) override;
  void on_proof(PendingPeer& peer) override;
  void on_peer_connected(transport::StreamPtr stream, const mpa::Agreement& agreement,
                         core::Bytes leftover) override;
  void on_connected(int fd) override;
  void on_connect_failed(int error) override;
  void expire() override;
  void on_first_fpdu() override {}
  void on_connection_ended(int) override {}

  engine::Engine& engine_;
  session::QueuePair& queue_pair_;
  const Appointment appointment_;
  Psns psns_;
  uint32_t challenges_ = 0;  // so many may have guessed
  core::Nanoseconds last_challenge_ = 0;
  uint32_t wrong_proofs_ = 0;
  core::Nanoseconds step_ = 0;  // of our patience
  int steps_waited_ = 0;        // since something was posted
  bool met_ = false;
  QpnListener* listener_ = nullptr;           // we wait there
  std::unique_ptr<PeerConnector> connector_;  // or we call
  int own_socket_ = -1;                       // or we are our own peer
  std::unique_ptr<transport::Connector> to_self_;
};

}  // namespace uiw::rendezvous
