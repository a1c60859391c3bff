// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/listener.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/log.h"
#include "core/raw_sys.h"
#include "core/unshared_descriptor.h"
#include "transport/addresses.h"
#include "transport/socket_options.h"

namespace uiw::transport {

namespace sys = core::sys;

namespace {

// How long to wait before accepting again when descriptors or memory ran out: long enough not to
// spin, short compared to any peer's connect timeout.
constexpr core::Nanoseconds kShortagePause = 100 * core::kMillisecond;

// Connections accepted in one turn of the engine, which then serves others.
constexpr int kAcceptsPerTurn = 64;

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

// Sets an option of SOL_SOCKET. 0 or a negative errno.
int switch_option(int fd, int option, bool on) {
  const int value = on;
  return sys::setsockopt(fd, SOL_SOCKET, option, &value, sizeof value);
}

// accept(2): errors of the connection to be accepted, not of the listener.
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

  int result = 0;
  if (options.reuse_address) result = switch_option(fd, SO_REUSEADDR, true);
  if (result == 0 && v6) {
    const int only = options.v6_only ? 1 : 0;
    result = sys::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  }
  if (result == 0 && options.tos >= 0) {
    result = v6 ? sys::setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &options.tos, sizeof options.tos)
                : sys::setsockopt(fd, IPPROTO_IP, IP_TOS, &options.tos, sizeof options.tos);
  }
  if (result == 0 && options.share_port) share_port(fd, true);
  // Not only in adopt(): options set before the handshake determine the first window, and accepted
  // sockets inherit them.
  if (result == 0 && is_loopback(address)) tune_for_local_peer(fd, 1);
  if (result == 0) result = sys::bind(fd, reinterpret_cast<const sockaddr*>(&address), length);
  if (result < 0) {
    sys::close(fd);
    return core::Errno{-result};
  }
  return fd;
}

void share_port(int fd, bool on) {
  switch_option(fd, SO_REUSEPORT, on);
}

void let_reuse_address(int fd, bool on) {
  switch_option(fd, SO_REUSEADDR, on);
}

namespace {

// A socket without SO_REUSEADDR until it listens never shares its port. Only if connections of an
// earlier listener are left, the option is needed before. 0 or a negative errno.
int listen_and_let_reuse(int fd, int backlog) {
  const int result = sys::listen(fd, backlog);
  let_reuse_address(fd, true);
  return result == -EADDRINUSE ? sys::listen(fd, backlog) : result;
}

}  // namespace

// Outlives the Listener until its operations have ended. Thread: engine.
//
// Waits on an epoll descriptor. An io_uring operation on the socket itself would hold the socket
// until the ring is freed, which happens only 10 to 20 ms after the process was killed: until then
// no other process could listen on its port.
struct Listener::Impl final : engine::Op, engine::Timer {
  ~Impl() {
    if (epoll_fd >= 0) sys::close(epoll_fd);
  }

  int open(int bound_fd, int backlog);
  void begin(engine::Engine& its_engine, AcceptHandler& its_handler);
  void wait() { engine->poll_readable(*this, epoll_fd); }
  void complete(int result, core::Bytes) override;
  void expire() override { go_on(); }
  void go_on();
  bool accept_one();
  void failed(int error);
  void tell_of_shortage(int error);
  void stop();
  void settle();

  // Null before begin().
  engine::Engine* engine = nullptr;
  AcceptHandler* handler = nullptr;
  // Unshared, as a forked child's copy would keep the port from others.
  core::UnsharedDescriptor socket;
  int epoll_fd = -1;
  CongestionControl hosts_choice;
  bool dead = false;     // on_accept_error() was called
  bool stopped = false;  // the Listener is gone
  bool paused = false;
  bool calling = false;   // inside complete()
  bool short_of = false;  // descriptors or memory were short since the last accept
};

// listen() comes last: nothing fails after it.
int Listener::Impl::open(int fd, int backlog) {
  epoll_fd = sys::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return -epoll_fd;
  hosts_choice = begin_with_reno(fd);
  send_at_once(fd);
  epoll_event readable{};
  readable.events = EPOLLIN;
  if (int result = sys::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &readable); result < 0)
    return -result;
  if (int result = listen_and_let_reuse(fd, backlog); result < 0) return -result;
  socket.take(fd);
  return 0;
}

void Listener::Impl::begin(engine::Engine& its_engine, AcceptHandler& its_handler) {
  engine = &its_engine;
  handler = &its_handler;
  wait();
}

void Listener::Impl::complete(int result, core::Bytes) {
  calling = true;
  if (result < 0) {
    if (!stopped) failed(-result);
  } else {
    for (int i = 0; i < kAcceptsPerTurn && accept_one(); ++i) continue;
  }
  calling = false;
  if (stopped) {
    settle();
  } else {
    go_on();
  }
}

void Listener::Impl::go_on() {
  if (!dead && !paused && !calling && !armed() && !in_flight()) wait();
}

// False when it should stop for now.
bool Listener::Impl::accept_one() {
  if (stopped || paused || !handler->has_room()) return false;
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  const int connection = sys::accept4(socket.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                                      SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    failed(-connection);
    return false;
  }
  short_of = false;
  leave_to_host(connection, peer, hosts_choice);
  handler->on_accept(connection, peer);
  return true;
}

void Listener::Impl::failed(int error) {
  if (is_of_one_connection(error)) return;
  if (is_shortage(error)) {
    if (!std::exchange(short_of, true)) tell_of_shortage(error);
    engine->arm(*this, kShortagePause);
    return;
  }
  dead = true;
  handler->on_accept_error(error);
}

// Logs it, as nothing else explains why the peer has an established connection and waits.
void Listener::Impl::tell_of_shortage(int error) {
  sockaddr_storage here{};
  socklen_t size = sizeof here;
  sys::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size);
  const bool of_process = error == EMFILE;
  core::log(core::LogLevel::kWarn, "TCP port %u: a connection cannot be accepted, it waits: %s%s",
            unsigned{port_of(here)}, strerrordesc_np(error),
            of_process ? "; raise the limit of descriptors (ulimit -n)" : "");
}

void Listener::Impl::stop() {
  stopped = true;
  if (engine != nullptr) engine->disarm(*this);
  if (in_flight()) engine->cancel(*this);
  // A child not made by fork() may have the socket, too, and live on. close() alone would leave it
  // listening there, with nobody to accept. This never runs in the child, which does not have the
  // parent's engine.
  sys::shutdown(socket.get(), SHUT_RD);
  socket.close();
  settle();
}

void Listener::Impl::settle() {
  if (!in_flight() && !calling) delete this;
}

core::Result<std::unique_ptr<Listener>> Listener::open(int bound_fd, int backlog) {
  std::unique_ptr<Listener> listener(new (std::nothrow) Listener);
  std::unique_ptr<Impl> impl(new (std::nothrow) Impl);
  if (!listener || !impl) return core::Errno{ENOMEM};
  if (int error = impl->open(bound_fd, backlog); error != 0) return core::Errno{error};
  listener->impl_ = impl.release();
  return listener;
}

void Listener::begin(engine::Engine& engine, AcceptHandler& handler) {
  impl_->begin(engine, handler);
}

core::Result<std::unique_ptr<Listener>> Listener::start(engine::Engine& engine, int bound_fd,
                                                        int backlog, AcceptHandler& handler) {
  core::Result<std::unique_ptr<Listener>> listener = open(bound_fd, backlog);
  if (listener) (*listener)->begin(engine, handler);
  return listener;
}

Listener::~Listener() {
  if (impl_) impl_->stop();
}

void Listener::pause() {
  impl_->paused = true;
}

void Listener::resume() {
  impl_->paused = false;
  impl_->go_on();
}

}  // namespace uiw::transport
