// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Listens at the TCP port that numbers of this process's queue pairs contain. Whoever connects has
// to name itself and the queue pair in its MPA Request, and to prove its identity when that queue
// pair challenges it. Anybody else is closed without an answer, whatever was wrong. A peer that
// comes before its queue pair expects it waits for a while. Thread: engine.
#pragma once

#include <memory>

#include "rendezvous/pending_peer.h"
#include "transport/listener.h"

namespace uiw::rendezvous {

// The queue pair of a number, once it expects a peer.
class Resident {
 public:
  // A hello for this queue pair has come, which challenges `peer` if that has the name it expects.
  // False: `peer` is to be closed. True without a challenge: it waits for the next expect().
  virtual bool welcome(PendingPeer& peer) = 0;
  // Its proof has come. The queue pair takes the stream if it is right; `peer` ends then.
  virtual void judge(PendingPeer& peer) = 0;

 protected:
  ~Resident() = default;
};

class Door final : private transport::AcceptHandler {
 public:
  // `all`: the pending peers at all doors of the process, which may have only so many descriptors
  // (core/strangers.h).
  Door(engine::Engine& engine, uint16_t port, AllPendingPeers& all)
      : engine_(engine), port_(port), all_pending_(all) {}
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Listens at an address of this host, with the door's port, if it does not yet, until dismiss():
  // `qp_num` is met there. `reserved` is bound to that port and keeps every other process from it.
  // 0 or errno: EADDRNOTAVAIL, ENOMEM, EMFILE.
  int open(uint32_t qp_num, const sockaddr_storage& address, int reserved);

  // From now until dismiss() `resident` is called for pending peers of this number, those that wait
  // already first. At most one for a number. A second call: it is called for waiting ones again.
  void expect(uint32_t qp_num, Resident& resident);
  void dismiss(uint32_t qp_num);

  // --- for PendingPeer ---
  void enter(PendingPeer& peer);
  void introduce(PendingPeer& peer);
  void judge(PendingPeer& peer);
  void leave(PendingPeer& peer);                      // ends it
  void send_off(PendingPeer& peer, const char* why);  // the same, and logs why

 private:
  void on_accept(int fd, const sockaddr_storage& peer) override;
  void on_accept_error(int error) override;
  void make_room();

  struct Entrance {
    sockaddr_storage address{};
    std::unique_ptr<transport::Listener> listener;
    std::unique_ptr<Entrance> next;
  };
  const Entrance* find(const sockaddr_storage& address) const;
  void close_unused();

  engine::Engine& engine_;
  const uint16_t port_;
  AllPendingPeers& all_pending_;  // oldest first
  // By index of the queue pair's number.
  Resident* residents_[kNumbersPerPort] = {};
  const Entrance* met_at_[kNumbersPerPort] = {};
  PendingPeerList pending_;  // oldest first
  std::unique_ptr<Entrance> entrances_;
};

}  // namespace uiw::rendezvous
