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
  // `device`: of the address that the listener is bound to, null for the wildcard.
  Acceptor(Manager& manager, engine::Engine& engine, std::unique_ptr<transport::Listener> listener,
           Service service, const device::Device* device);

  // What is to be had here. Constant. Thread: any.
  Service service() const { return service_; }

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

  // For AdmissionControl, which says when there is room for more connections. Thread: engine.
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
  uint32_t complete_ = 0;  // how many of them have sent their Request
  bool paused_ = false;    // until AdmissionControl has room
};

}  // namespace uiw::cm
