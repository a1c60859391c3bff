// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A TCP port where peers meet queue pairs of this process. Whoever comes has to say in the
// MPA Request who he is and whom he means, and to prove it when that queue pair asks him to.
// Strangers are sent off without an answer, whatever they got wrong; who comes before his queue
// pair expects him waits for a while. Thread: engine.
#pragma once

#include <memory>

#include "rendezvous/guest.h"
#include "transport/listener.h"

namespace uiw::rendezvous {

// The queue pair behind a number, once it expects a guest.
class Resident {
 public:
  // `guest` means this queue pair, which challenges him if he says that he is the one it expects.
  // False: he has to leave. True without a challenge: he waits for the next expect().
  virtual bool welcome(Guest& guest) = 0;
  // He was challenged and has given his proof: the queue pair takes his stream if that is right. He
  // leaves then.
  virtual void judge(Guest& guest) = 0;

 protected:
  ~Resident() = default;
};

class Door final : private transport::AcceptHandler {
 public:
  // `all`: the guests at all doors of the process; strangers have so many descriptors there
  // (core/strangers.h).
  Door(engine::Engine& engine, uint16_t port, AllGuests& all)
      : engine_(engine), port_(port), all_guests_(all) {}
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Listens at an address of this host, with the door's port, if it does not yet, until dismiss():
  // `qp_num` is met there. `reserved` is bound to that port and keeps every other process from it.
  // 0 or errno: EADDRNOTAVAIL, ENOMEM, EMFILE.
  int open(uint32_t qp_num, const sockaddr_storage& address, int reserved);

  // From now on `resident` is asked about guests for this number, those that wait already first,
  // until dismiss(). At most one for a number. Once more: those that wait are asked about again.
  void expect(uint32_t qp_num, Resident& resident);
  void dismiss(uint32_t qp_num);

  // --- for guests ---
  void enter(Guest& guest);
  void introduce(Guest& guest);
  void judge(Guest& guest);
  void leave(Guest& guest);                      // ends him
  void send_off(Guest& guest, const char* why);  // ends him, and says why to our user

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
  AllGuests& all_guests_;  // oldest first
  // By index of the queue pair's number.
  Resident* residents_[kNumbersPerPort] = {};
  const Entrance* met_at_[kNumbersPerPort] = {};
  GuestList guests_;  // oldest first
  std::unique_ptr<Entrance> entrances_;
};

}  // namespace uiw::rendezvous
