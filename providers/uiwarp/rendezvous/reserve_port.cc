// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rendezvous/reserve_port.h"

#include <cerrno>

#include "core/gid.h"
#include "core/settings.h"
#include "transport/bind_alone.h"

namespace uiw::rendezvous {
namespace {

core::Result<int> bind_everywhere(uint16_t port, transport::Beside beside) {
  core::Result<int> fd =
      transport::bind_alone(core::socket_address_of(in6addr_any, port, 0), {}, beside);
  if (fd || fd.error() != EAFNOSUPPORT) return fd;
  constexpr in6_addr kAnyV4 = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}}};
  return transport::bind_alone(core::socket_address_of(kAnyV4, port, 0), {}, beside);
}

core::Result<int> first_of_range(transport::Beside beside) {
  const core::Settings& settings = core::settings();
  for (uint32_t port = settings.first_port; port <= settings.last_port; ++port) {
    core::Result<int> fd = bind_everywhere(static_cast<uint16_t>(port), beside);
    if (fd || fd.error() != EADDRINUSE) return fd;
  }
  return core::Errno{EADDRINUSE};
}

}  // namespace

core::Result<int> reserve_port() {
  if (core::settings().first_port == 0) return bind_everywhere(0, transport::Beside::kNothing);
  core::Result<int> fd = first_of_range(transport::Beside::kNothing);
  if (fd || fd.error() != EADDRINUSE) return fd;
  return first_of_range(transport::Beside::kOldConnections);
}

}  // namespace uiw::rendezvous
