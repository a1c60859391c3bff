// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/bind_alone.h"

#include <sys/un.h>

#include <cstddef>
#include <cstdio>

#include "core/raw_sys.h"
#include "transport/addresses.h"

namespace uiw::transport {
namespace {

namespace sys = core::sys;

// Takes a lock per port that only one process of the host can have. Returns a descriptor or -errno.
int take_turn(uint16_t port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // An abstract name: it begins with a zero byte, and vanishes with its socket.
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

}  // namespace

core::Result<int> bind_alone(const sockaddr_storage& address, BindOptions options, Beside beside) {
  options.reuse_address = beside == Beside::kOldConnections;
  if (!options.reuse_address) return bind_tcp(address, options);
  // With SO_REUSEADDR two processes could bind one port at the same time, so they take turns.
  // Afterwards the socket has no SO_REUSEADDR, and nobody else gets the port.
  const int turn = take_turn(port_of(address));
  if (turn < 0) return core::Errno{-turn};
  core::Result<int> fd = bind_tcp(address, options);
  if (fd) let_reuse_address(*fd, false);
  sys::close(turn);
  return fd;
}

}  // namespace uiw::transport
