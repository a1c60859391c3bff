// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <cerrno>
#include <new>
#include <utility>

#include "core/raw_sys.h"
#include "transport/addresses.h"
#include "transport/close_connection.h"
#include "transport/listener.h"
#include "transport/socket_options.h"

namespace uiw::transport {

namespace sys = core::sys;

namespace {

// The result of connecting a socket: 0 or a positive errno.
int error_of(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  const int result = sys::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return result < 0 ? -result : error;
}

// RFC 9293 3.5: an attempt whose own address is its destination connects to itself. That happens if
// nobody listens at a port of this host which the kernel may choose for our end.
bool has_met_itself(int fd, const sockaddr_storage& to) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  return sys::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
         port_of(own) == port_of(to) && same_host(own, to);
}

}  // namespace

// Outlives the Connector until its operations have ended. Thread: engine.
struct Connector::Impl final : engine::Op, engine::Timer {
  Impl(engine::Engine& its_engine, int its_fd, int its_error, ConnectHandler& its_handler)
      : engine(its_engine), fd(its_fd), error(its_error), handler(&its_handler) {}

  void complete(int result, core::Bytes) override;
  void expire() override;
  void give_up();
  void stop();
  void settle();

  engine::Engine& engine;
  int fd;                   // -1: handed over or closed
  const int error;          // why begin() failed, or ETIMEDOUT
  ConnectHandler* handler;  // null: was called, or must not be called
  bool stopped = false;     // the Connector is gone
  bool calling = false;     // inside complete() or expire()
};

void Connector::Impl::complete(int result, core::Bytes) {
  calling = true;
  engine.disarm(*this);
  if (ConnectHandler* told = std::exchange(handler, nullptr)) {
    const int socket = std::exchange(fd, -1);
    const int failed = result < 0 ? -result : error_of(socket);
    if (failed == 0) {
      told->on_connected(socket);
    } else {
      sys::close(socket);
      told->on_connect_failed(failed);
    }
  }
  calling = false;
  settle();
}

void Connector::Impl::expire() {
  calling = true;
  give_up();
  if (ConnectHandler* told = std::exchange(handler, nullptr)) told->on_connect_failed(error);
  calling = false;
  settle();
}

void Connector::Impl::give_up() {
  engine.disarm(*this);
  if (in_flight()) {
    engine.cancel(*this);
    engine.flush();  // else the ring would keep the socket, and its port, a little longer
  }
  if (fd >= 0) close_connection(std::exchange(fd, -1));
}

void Connector::Impl::stop() {
  stopped = true;
  handler = nullptr;
  give_up();
  settle();
}

void Connector::Impl::settle() {
  if (stopped && !in_flight() && !calling) delete this;
}

int Connector::begin(int fd, const sockaddr_storage& to, bool local, Itself itself) {
  send_at_once(fd);
  // bind_tcp() does this only for loopback addresses; the socket may be bound to another address of
  // this host, or to none.
  if (local) tune_for_local_peer(fd, 1);
  const int result = sys::connect(fd, reinterpret_cast<const sockaddr*>(&to), length_of(to));
  if (result != 0 && result != -EINPROGRESS) return -result;
  if (!local || itself == Itself::kMeant || !has_met_itself(fd, to)) return 0;
  cut_connection(fd);
  return ECONNREFUSED;
}

std::unique_ptr<Connector> Connector::start(engine::Engine& engine, int fd, int begun,
                                            core::Nanoseconds timeout, ConnectHandler& handler) {
  std::unique_ptr<Connector> connector(new (std::nothrow) Connector);
  if (!connector) return nullptr;
  connector->impl_ = new (std::nothrow) Impl(engine, fd, begun ? begun : ETIMEDOUT, handler);
  if (!connector->impl_) return nullptr;
  if (begun == 0) engine.poll_writable(*connector->impl_, fd);
  engine.arm(*connector->impl_, begun == 0 ? timeout : 0);
  return connector;
}

Connector::~Connector() {
  if (impl_) impl_->stop();
}

}  // namespace uiw::transport
