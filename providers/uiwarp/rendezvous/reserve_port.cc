// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/reserve_port.h"

#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "core/gid.h"
#include "core/raw_sys.h"
#include "core/settings.h"
#include "transport/listener.h"

namespace uiw::rendezvous {
namespace {

namespace sys = core::sys;

enum class Beside {
  kNothing,
  kTimeWait,  // connections that have ended, whose sockets had SO_REUSEADDR
};

core::Result<int> bind_everywhere(uint16_t port, Beside beside) {
  transport::BindOptions options;
  options.reuse_address = beside == Beside::kTimeWait;
  core::Result<int> fd =
      transport::bind_tcp(core::socket_address_of(in6addr_any, port, 0), options);
  if (fd || fd.error() != EAFNOSUPPORT) return fd;
  constexpr in6_addr kAnyV4 = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}}};
  return transport::bind_tcp(core::socket_address_of(kAnyV4, port, 0), options);
}

// What only one process of the host can have for a port. -errno
int take_turn(uint16_t port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // Abstract: it begins with a zero, and goes with its socket.
  const int length =
      std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "uiwarp-port-%u", unsigned{port});
  const int fd = sys::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  const int error = sys::bind(fd, reinterpret_cast<const sockaddr*>(&name), size);
  if (error == 0) return fd;
  sys::close(fd);
  return error;
}

// With SO_REUSEADDR two processes could have one port while they bind, so each takes its turn;
// without it, as the socket is afterwards, nobody else gets the port.
core::Result<int> bind_beside_time_wait(uint16_t port) {
  const int turn = take_turn(port);
  if (turn < 0) return core::Errno{-turn};
  core::Result<int> fd = bind_everywhere(port, Beside::kTimeWait);
  if (fd) {
    const int off = 0;
    sys::setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off);
  }
  sys::close(turn);
  return fd;
}

template <class Bind>
core::Result<int> first_of_range(Bind&& bind) {
  const core::Settings& settings = core::settings();
  for (uint32_t port = settings.first_port; port <= settings.last_port; ++port) {
    core::Result<int> fd = bind(static_cast<uint16_t>(port));
    if (fd || fd.error() != EADDRINUSE) return fd;
  }
  return core::Errno{EADDRINUSE};
}

}  // namespace

core::Result<int> reserve_port() {
  if (core::settings().first_port == 0) return bind_everywhere(0, Beside::kNothing);
  core::Result<int> fd =
      first_of_range([](uint16_t port) { return bind_everywhere(port, Beside::kNothing); });
  if (fd || fd.error() != EADDRINUSE) return fd;
  return first_of_range(bind_beside_time_wait);
}

}  // namespace uiw::rendezvous
