// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Takes a TCP port from all other processes of this host, also before anybody listens at it.
#pragma once

#include "core/result.h"
#include "transport/listener.h"

namespace uiw::transport {

enum class Beside {
  kNothing,
  // Connections that are left of somebody who was there before, in TIME_WAIT mostly: their sockets
  // had SO_REUSEADDR.
  kOldConnections,
};

// bind_tcp(), after which nobody else gets the port, by SO_REUSEADDR neither, whatever `options`
// says of that. So the socket has not got it: who is to come after the connections that this one
// makes or accepts needs let_reuse_address() first. Thread: any.
core::Result<int> bind_alone(const sockaddr_storage& address, BindOptions options, Beside beside);

}  // namespace uiw::transport
