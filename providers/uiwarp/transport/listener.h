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
  bool share_port = false;  // with a socket of this user for which share_port() says so
  bool v6_only = false;
  int tos = -1;  // -1: leave
};
core::Result<int> bind_tcp(const sockaddr_storage& address, const BindOptions& options);
// Whether the port that `fd` is bound to may be bound once more, by who asks for it (SO_REUSEPORT).
void share_port(int fd, bool on);
// SO_REUSEADDR: whether the port may be bound once more, by who asks for it, where `fd` does not
// listen. What it accepts has it, too, and what is left of its connection.
void let_reuse_address(int fd, bool on);

// Thread: engine. May destroy the listener.
class AcceptHandler {
 public:
  // Before each connection is accepted. False: it has called pause().
  virtual bool has_room() { return true; }
  virtual void on_accept(int fd, const sockaddr_storage& peer) = 0;  // owns fd
  // The listener is dead. Shortage of descriptors or memory does not kill it: it tries again.
  virtual void on_accept_error(int error) = 0;

 protected:
  ~AcceptHandler() = default;
};

// Thread: engine, unless something else is said.
class Listener {
 public:
  // Takes over a bound socket and listens: TCP takes connections from now on, which wait for
  // begin(). Once it listens nobody else can bind there; whoever comes after it can, beside the
  // connections that it has accepted. Error: EADDRINUSE, EINVAL, EMFILE, ENOMEM. The descriptor
  // stays the caller's when this fails, and does not listen. Thread: any, which may also destroy
  // one that has not begun.
  static core::Result<std::unique_ptr<Listener>> open(int bound_fd, int backlog);
  // Accepts them. Once.
  void begin(engine::Engine& engine, AcceptHandler& handler);
  // Both.
  static core::Result<std::unique_ptr<Listener>> start(engine::Engine& engine, int bound_fd,
                                                       int backlog, AcceptHandler& handler);
  // Stops; no handler call comes after; the socket is closed (pending connections are reset) and
  // its address is free again when this returns; also when the process ends in any other way.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Takes no connections until resume(): those that come wait in TCP's queue. May be called from
  // inside on_accept().
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
  // What it is when nobody but the socket itself has the address that it connects to.
  enum class Itself { kRefused, kMeant };
  // Has a non-blocking socket, bound or not, begin to connect; `local`: to a peer on this host
  // (is_local_peer()). 0 or a positive errno, which is for start(). On loopback the peer's side of
  // the handshake runs inside. Thread: any.
  static int begin(int fd, const sockaddr_storage& to, bool local,
                   Itself itself = Itself::kRefused);
  // Takes over a socket for which begin() said `begun`, and waits for what becomes of it, giving up
  // with ETIMEDOUT after `timeout`. The handler is never called from inside start(). Null when out
  // of memory: the descriptor then stays the caller's.
  static std::unique_ptr<Connector> start(engine::Engine& engine, int fd, int begun,
                                          core::Nanoseconds timeout, ConnectHandler& handler);
  // Gives up; no handler call comes after; the socket is closed when this returns, unless it was
  // handed to on_connected().
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct Impl;
  Connector() = default;
  Impl* impl_ = nullptr;
};

}  // namespace uiw::transport
