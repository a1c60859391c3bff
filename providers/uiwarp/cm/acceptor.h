// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A listening id: accepts TCP connections and starts a Responder for each, which reads the MPA
// Request.
#pragma once

#include <sys/socket.h>

#include <memory>

#include "cm/endpoint.h"
#include "cm/responder.h"
#include "transport/listener.h"

namespace uiw::cm {

class Acceptor final : public Endpoint, private transport::AcceptHandler {
 public:
  // `device`: the device of the address that the listener is bound to; null for the wildcard.
  Acceptor(Manager& manager, engine::Engine& engine, std::unique_ptr<transport::Listener> listener,
           Service service, const device::Device* device);

  // The service offered here. Constant. Thread: any.
  Service service() const { return service_; }

  // TCP's queue of connections that are not accepted yet: as long as the host allows
  // (net.core.somaxconn). They are usually accepted at once. If the queue is full, peers retry
  // after a second.
  static constexpr int kTcpQueue = SOMAXCONN;

  // A connection's Request is complete. The application is told in a later turn of the engine. If
  // the Requests of several connections are in their sockets by then, it is told in the order of
  // the connections: the octets are found in any order, but programs number their connections at
  // both ends (perftest's -q). Thread: engine.
  void request_came();

  // Adds and removes a connection of whose Request the application has not been told yet. Thread:
  // engine.
  void join(Responder& responder);
  void leave(Responder& responder);

  // Called by AdmissionControl, depending on whether there is room for more connections. Thread:
  // engine.
  void pause();
  void resume();
  bool paused() const { return paused_; }
  core::ListLink<Acceptor> before_admission;

 private:
  ~Acceptor() override;
  void carry_out(uint32_t orders) override;
  void offer();
  void offer_soon();
  bool has_room() override;
  void on_accept(int fd, const sockaddr_storage& peer) override;
  void on_accept_error(int error) override;

  const Service service_;
  const device::Device* const device_;
  std::unique_ptr<transport::Listener> listener_;
  using HalfOpen = core::List<Responder, &Responder::half_open>;
  HalfOpen half_open_;     // oldest first
  uint32_t complete_ = 0;  // how many of half_open_ have sent their Request
  bool paused_ = false;    // until AdmissionControl has room
};

}  // namespace uiw::cm
