// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A listening id: takes TCP connections and has each one's MPA Request read.
#pragma once

#include <sys/socket.h>

#include <memory>

#include "cm/endpoint.h"
#include "cm/responder.h"
#include "transport/listener.h"

namespace uiw::cm {

class Acceptor final : public Endpoint, private transport::AcceptHandler {
 public:
  // Takes over a listening socket. `device`: of the address it is bound to, null for the wildcard.
  Acceptor(Manager& manager, engine::Engine& engine, int listen_fd, const device::Device* device);

  // Connections that TCP holds until they are taken, which is at once as a rule: what the host
  // allows (net.core.somaxconn). More come again after a second.
  static constexpr int kTcpQueue = SOMAXCONN;

  // A connection's Request is complete. The application is told in a later turn of the engine, and
  // of all Requests that lie in the sockets then in the order of the connections: the octets are
  // found in any order, and programs number their connections at either end (perftest's -q does).
  // Thread: engine.
  void request_came();

  // Connections of whose Request the application has not been told yet. Thread: engine.
  void join(Responder& responder);
  void leave(Responder& responder);

  // Connections without a Request that a listener holds at most, so that a flood of them leaves
  // descriptors for everything else. Others wait until one of these has sent its Request, or has
  // had the time for that: then the oldest makes room for the next.
  static uint32_t max_half_open();

 private:
  ~Acceptor() override;
  void carry_out(uint32_t orders) override;
  void offer();
  void offer_soon();
  void listen();
  void make_room();
  void on_accept(int fd, const sockaddr_storage& peer) override;
  void on_accept_error(int error) override;

  int fd_;  // until the listener has it
  const device::Device* const device_;
  const uint32_t max_half_open_;
  std::unique_ptr<transport::Listener> listener_;
  using HalfOpen = core::List<Responder, &Responder::half_open>;
  HalfOpen half_open_;     // oldest first
  uint32_t complete_ = 0;  // how many of them have sent their Request
  bool full_ = false;      // the listener is paused
  engine::Deadline<Acceptor, &Acceptor::make_room> oldest_overdue_{*this};
};

}  // namespace uiw::cm
