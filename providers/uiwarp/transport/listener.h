// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A listening TCP socket and an outgoing connection attempt.
#pragma once

#include <sys/socket.h>

#include <memory>

#include "core/result.h"
#include "engine/engine.h"

namespace uiw::transport {

// Creates a TCP socket bound to `address` (port 0: the kernel chooses). CLOEXEC, non-blocking.
// Returns the descriptor, or errno: EADDRINUSE, EADDRNOTAVAIL, EACCES, EAFNOSUPPORT, EMFILE.
struct BindOptions {
  bool reuse_address = true;
  bool share_port = false;  // with a socket of this user for which share_port() was called
  bool v6_only = false;
  int tos = -1;  // -1: leave
};
core::Result<int> bind_tcp(const sockaddr_storage& address, const BindOptions& options);
// SO_REUSEPORT: whether another socket with that option may bind the port of `fd`.
void share_port(int fd, bool on);
// SO_REUSEADDR: whether another socket with that option may bind the port while `fd` does not
// listen. Accepted sockets inherit it, and so does what is left of their connections.
void let_reuse_address(int fd, bool on);

// Thread: engine. May destroy the listener.
class AcceptHandler {
 public:
  // Called before each connection is accepted. False: it has called pause().
  virtual bool has_room() { return true; }
  virtual void on_accept(int fd, const sockaddr_storage& peer) = 0;  // owns fd
  // The listener has failed for good. After a shortage of descriptors or memory it retries instead.
  virtual void on_accept_error(int error) = 0;

 protected:
  ~AcceptHandler() = default;
};

// Thread: engine, unless stated otherwise.
class Listener {
 public:
  // Takes over a bound socket and listens: from now on TCP takes connections, which wait for
  // begin(). While it listens nobody else can bind there; later others can, beside the connections
  // that it has accepted. Error: EADDRINUSE, EINVAL, EMFILE, ENOMEM. On error the descriptor stays
  // the caller's and does not listen. Thread: any. A listener without begin() may be destroyed on
  // any thread.
  static core::Result<std::unique_ptr<Listener>> open(int bound_fd, int backlog);
  // Starts to accept. Call it once.
  void begin(engine::Engine& engine, AcceptHandler& handler);
  // open() and begin().
  static core::Result<std::unique_ptr<Listener>> start(engine::Engine& engine, int bound_fd,
                                                       int backlog, AcceptHandler& handler);
  // Stops. When this returns, no handler is called any more, the socket is closed (pending
  // connections are reset) and its address is free. The address is also free when the process ends
  // in any other way.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Accepts nothing until resume(); new connections wait in TCP's queue. May be called from inside
  // on_accept().
  void pause();
  void resume();

 private:
  struct Impl;
  Listener() = default;
  Impl* impl_ = nullptr;
};

// Thread: engine. May destroy the connector.
class ConnectHandler {
 public:
  virtual void on_connected(int fd) = 0;          // owns fd
  virtual void on_connect_failed(int error) = 0;  // ECONNREFUSED, ETIMEDOUT, ENETUNREACH, ...

 protected:
  ~ConnectHandler() = default;
};

// Thread: engine. One attempt; exactly one handler call unless destroyed before.
class Connector {
 public:
  // How a connection of a socket to its own address is treated.
  enum class Itself { kRefused, kMeant };
  // Starts to connect a non-blocking socket, bound or not. `local`: the peer is on this host
  // (is_local_peer()). Returns 0 or a positive errno; pass it to start(). On loopback the peer's
  // side of the handshake runs inside this call. Thread: any.
  static int begin(int fd, const sockaddr_storage& to, bool local,
                   Itself itself = Itself::kRefused);
  // Takes over a socket for which begin() returned `begun`, and waits for the result; gives up with
  // ETIMEDOUT after `timeout`. Never calls the handler from inside start(). Null when out of
  // memory: the descriptor then stays the caller's.
  static std::unique_ptr<Connector> start(engine::Engine& engine, int fd, int begun,
                                          core::Nanoseconds timeout, ConnectHandler& handler);
  // Gives up. When this returns, no handler is called any more, and the socket is closed unless it
  // was handed to on_connected().
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct Impl;
  Connector() = default;
  Impl* impl_ = nullptr;
};

}  // namespace uiw::transport
