// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Room for connections at all listeners together of which no application knows yet: strangers have
// so many descriptors (core/strangers.h). While it is full nobody is accepted, and those who come
// wait in TCP's queues. The oldest without a Request makes room when it has had the time to send
// one, whichever listener it came to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cm/acceptor.h"
#include "cm/responder.h"
#include "core/settings.h"

namespace uiw::cm {

// Thread: engine, unless it says otherwise.
class Lobby {
 public:
  explicit Lobby(const core::Settings& settings) : settings_(settings) {}

  // Asks how many descriptors the process may have; before each listener is there. Thread: any.
  void measure();

  // Whether one more may be accepted now. If not the acceptor is paused until there is room.
  bool admit(Acceptor& acceptor, engine::Engine& engine);
  // An acceptor that ends waits no more.
  void forget(Acceptor& acceptor);
  void enter(Responder& responder) { all_.append(responder); }
  void leave(Responder& responder);

  // CONNECT_REQUESTs that are queued and not fetched; the manager's lock is held. Whether a
  // listener that has so many of them may have one more: a quarter of what others leave stays for
  // others.
  bool may_queue(uint32_t of_this_listener) const;
  void queued();
  void fetched();

 private:
  size_t most() const;
  bool make_room();
  void go_on();

  const core::Settings& settings_;
  // Read by any thread.
  std::atomic<uint32_t> at_listeners_{0}, most_not_fetched_{0}, least_not_told_{0};
  std::atomic<uint32_t> not_fetched_{0};

  core::List<Responder, &Responder::in_lobby> all_;        // oldest first
  core::List<Acceptor, &Acceptor::before_lobby> waiting_;  // paused; who waits longest first
  engine::Engine* engine_ = nullptr;                       // once there was somebody
  engine::Deadline<Lobby, &Lobby::go_on> next_{*this};     // armed only while acceptors wait
};

}  // namespace uiw::cm
