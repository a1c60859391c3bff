// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Finds the peer that ibv_modify_qp named and connects the queue pair to it: the end with the
// smaller name listens, the one with the greater name connects. Each has to prove that it knows the
// PSNs that both programs have set. A queue pair that was given its own name gets a TCP connection
// to itself. No daemon and no additional connection is needed. Thread: engine, all of it.
#pragma once

#include <memory>

#include "rendezvous/peer_connector.h"
#include "rendezvous/qpn_listener.h"
#include "session/queue_pair.h"

namespace uiw::rendezvous {

struct PeerSearchParams {
  Name own, peer;
  unsigned ifindex = 0;                              // of our device, for link-local addresses
  uint16_t ird = 0;                                  // max_dest_rd_atomic
  uint32_t rq_psn = 0;                               // the peer's sq_psn
  core::Service service = core::Service::kReliable;  // of our queue pair; the peer's is the same
};

class PeerSearch final : private PendingPeerHandler,
                         private PeerConnectHandler,
                         private transport::ConnectHandler,
                         private engine::Timer,
                         private session::ConnectionObserver {
 public:
  // Nothing happens before begin(). Destroy it before the queue pair, and before its number is
  // given back. Errno: EADDRINUSE, ENOMEM, EADDRNOTAVAIL (own address, or a number without a port,
  // see verbs/registry.h).
  static core::Result<std::unique_ptr<PeerSearch>> create(engine::Engine& engine,
                                                          session::QueuePair& queue_pair,
                                                          const PeerSearchParams& params);
  ~PeerSearch();

  void begin();
  // The queue pair went to RTS. From now on posted requests wait for the peer for `time_limit`, or
  // up to a quarter longer; then they fail with IBV_WC_RETRY_EXC_ERR. 0: they wait forever. With
  // unreliable service they are dropped then, and the peer may still connect.
  void enter_rts(uint32_t sq_psn, core::Nanoseconds time_limit);

 private:
  PeerSearch(engine::Engine& engine, session::QueuePair& queue_pair, const PeerSearchParams& params)
      : engine_(engine),
        queue_pair_(queue_pair),
        params_(params),
        psns_{.receive = params.rq_psn, .send = {}} {}
  int make_ready();
  void give_up();
  bool may_challenge();
  bool is_of_our_type(const HandshakeMessage& hello);
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
  const PeerSearchParams params_;
  Psns psns_;
  uint32_t challenges_ = 0;  // how many were sent; each peer may have guessed the PSNs
  core::Nanoseconds last_challenge_ = 0;
  uint32_t wrong_proofs_ = 0, wrong_types_ = 0;
  core::Nanoseconds step_ = 0;  // a fraction of the time limit
  int steps_waited_ = 0;        // since something was posted
  bool found_ = false;
  QpnListener* listener_ = nullptr;           // the peer connects here
  std::unique_ptr<PeerConnector> connector_;  // or this end connects
  int own_socket_ = -1;                       // or the queue pair is its own peer
  std::unique_ptr<transport::Connector> to_self_;
};

}  // namespace uiw::rendezvous
