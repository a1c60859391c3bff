// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Listens at the TCP port that queue pair numbers of this process contain. A peer that connects
// must name itself and the queue pair in its MPA Request, and prove its identity when that queue
// pair challenges it. Any other connection is closed without an answer, whatever was wrong. A peer
// that connects before its queue pair expects it waits for a while. Thread: engine.
#pragma once

#include <memory>

#include "rendezvous/pending_peer.h"
#include "transport/listener.h"

namespace uiw::rendezvous {

// The callbacks of a queue pair that expects its peer.
class PendingPeerHandler {
 public:
  // A hello for this queue pair has come. The queue pair challenges `peer` if it has the expected
  // name. False: close `peer`. True without a challenge: `peer` waits for the next expect().
  virtual bool on_hello(PendingPeer& peer) = 0;
  // The proof of `peer` has come. If it is right, the queue pair takes the stream. `peer` is
  // destroyed afterwards.
  virtual void on_proof(PendingPeer& peer) = 0;

 protected:
  ~PendingPeerHandler() = default;
};

class QpnListener final : private transport::AcceptHandler {
 public:
  // `all`: the pending peers at all listeners of the process; these share a limited number of
  // descriptors (core/descriptor_shares.h).
  QpnListener(engine::Engine& engine, uint16_t port, AllPendingPeers& all)
      : engine_(engine), port_(port), all_pending_(all) {}
  ~QpnListener();
  QpnListener(const QpnListener&) = delete;
  QpnListener& operator=(const QpnListener&) = delete;

  // Listens for the peer of `qp_num` at an address of this host and the listener's port, unless it
  // does already, until stop_expecting(). `reserved` is bound to that port and keeps other
  // processes from it. 0 or errno: EADDRNOTAVAIL, ENOMEM, EMFILE.
  int listen(uint32_t qp_num, const sockaddr_storage& address, int reserved);

  // Calls `handler` for pending peers of this number until stop_expecting(), first for those that
  // wait already. At most one handler per number. Another call offers it the waiting peers again.
  void expect(uint32_t qp_num, PendingPeerHandler& handler);
  void stop_expecting(uint32_t qp_num);

  // --- for PendingPeer ---
  void add(PendingPeer& peer);
  void hello_received(PendingPeer& peer);
  void proof_received(PendingPeer& peer);
  void remove(PendingPeer& peer);                   // destroys it
  void refuse(PendingPeer& peer, const char* why);  // the same, and logs why

 private:
  void on_accept(int fd, const sockaddr_storage& peer) override;
  void on_accept_error(int error) override;
  void make_room();

  struct Socket {
    sockaddr_storage address{};
    std::unique_ptr<transport::Listener> listener;
    std::unique_ptr<Socket> next;
  };
  const Socket* find(const sockaddr_storage& address) const;
  void close_unused();

  engine::Engine& engine_;
  const uint16_t port_;
  AllPendingPeers& all_pending_;  // oldest first
  // By index of the queue pair's number.
  PendingPeerHandler* handlers_[kNumbersPerPort] = {};
  const Socket* socket_of_[kNumbersPerPort] = {};
  PendingPeerList pending_;  // oldest first
  std::unique_ptr<Socket> sockets_;
};

}  // namespace uiw::rendezvous
