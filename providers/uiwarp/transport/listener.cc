// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/listener.h"

#include <netinet/in.h>
#include <netinet/ip.h>

#include <cerrno>
#include <new>

#include "core/raw_sys.h"
#include "transport/addresses.h"
#include "transport/socket_options.h"

namespace uiw::transport {

namespace sys = core::sys;

namespace {

// How long to wait before accepting again when descriptors or memory ran out: long enough not to
// spin, short against any peer's connect timeout.
constexpr core::Nanoseconds kShortagePause = 100 * core::kMillisecond;

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

// accept(2): errors of the connection that was just to be accepted, not of the listener.
bool is_of_one_connection(int error) {
  switch (error) {
    case ECONNABORTED:
    case EPROTO:
    case EPERM:  // firewall
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EINTR:
    case EAGAIN:
      return true;
    default:
      return false;
  }
}

}  // namespace

core::Result<int> bind_tcp(const sockaddr_storage& address, const BindOptions& options) {
  const socklen_t length = length_of(address);
  if (length == 0) return core::Errno{EAFNOSUPPORT};
  const bool v6 = address.ss_family == AF_INET6;
  const int fd = sys::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return core::Errno{-fd};

  const int on = 1;
  int result = 0;
  if (options.reuse_address) {
    result = sys::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  if (result == 0 && v6) {
    const int only = options.v6_only ? 1 : 0;
    result = sys::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (result == 0 && options.tos >= 0) {
    result = v6 ? sys::setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &options.tos, sizeof options.tos)
                : sys::setsockopt(fd, IPPROTO_IP, IP_TOS, &options.tos, sizeof options.tos);
  }
  // Here rather than in adopt() alone: what is set before the handshake shapes the first window,
  // and accepted sockets inherit it.
  if (result == 0 && is_loopback(address)) tune_for_local_peer(fd);
  if (result == 0) result = sys::bind(fd, reinterpret_cast<const sockaddr*>(&address), length);
  if (result < 0) {
    sys::close(fd);
    return core::Errno{-result};
  }
  return fd;
}

// Outlives the Listener until the ring has let go of it. Thread: engine.
struct Listener::Impl final : engine::Op, engine::Timer {
  Impl(engine::Engine& its_engine, int its_fd, AcceptHandler& its_handler)
      : engine(its_engine), fd(its_fd), handler(its_handler) {}

  void complete(int result, bool more, core::Bytes) override;
  void expire() override { engine.accept(*this, fd); }
  void accepted(int connection);
  void failed(int error);
  void stop();
  void settle();

  engine::Engine& engine;
  const int fd;
  AcceptHandler& handler;
  bool dead = false;     // on_accept_error() was called
  bool stopped = false;  // the Listener is gone
  bool calling = false;  // inside complete()
};

void Listener::Impl::complete(int result, bool more, core::Bytes) {
  calling = true;
  if (result >= 0) {
    accepted(result);
  } else if (!more && !stopped) {
    failed(-result);
  }
  calling = false;
  if (stopped) {
    settle();
  } else if (!more && !dead && !armed()) {
    engine.accept(*this, fd);
  }
}

void Listener::Impl::accepted(int connection) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  // Fails when the peer has reset the connection already: as if it had never come.
  if (stopped || sys::getpeername(connection, reinterpret_cast<sockaddr*>(&peer), &size) < 0) {
    sys::close(connection);
    return;
  }
  handler.on_accept(connection, peer);
}

void Listener::Impl::failed(int error) {
  if (is_of_one_connection(error)) return;
  if (is_shortage(error)) {
    engine.arm(*this, kShortagePause);
    return;
  }
  dead = true;
  handler.on_accept_error(error);
}

void Listener::Impl::stop() {
  stopped = true;
  engine.disarm(*this);
  if (in_flight()) {
    engine.cancel(*this);
    engine.flush();  // or the ring would keep the socket, and its port, a little longer
  }
  sys::close(fd);
  settle();
}

void Listener::Impl::settle() {
  if (!in_flight() && !calling) delete this;
}

core::Result<std::unique_ptr<Listener>> Listener::start(engine::Engine& engine, int bound_fd,
                                                        int backlog, AcceptHandler& handler) {
  std::unique_ptr<Listener> listener(new (std::nothrow) Listener);
  std::unique_ptr<Impl> impl(new (std::nothrow) Impl(engine, bound_fd, handler));
  if (!listener || !impl) return core::Errno{ENOMEM};
  if (int result = sys::listen(bound_fd, backlog); result < 0) return core::Errno{-result};
  engine.accept(*impl, bound_fd);
  listener->impl_ = impl.release();
  return listener;
}

Listener::~Listener() {
  if (impl_) impl_->stop();
}

}  // namespace uiw::transport
