// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Reserves a TCP port against all other processes of this host, even before it listens.
#pragma once

#include "core/result.h"
#include "transport/listener.h"

namespace uiw::transport {

enum class Beside {
  kNothing,
  // Connections left over from an earlier owner of the port, mostly in TIME_WAIT, whose sockets had
  // SO_REUSEADDR.
  kOldConnections,
};

// bind_tcp(); afterwards nobody else can bind the port, not even with SO_REUSEADDR. For that the
// socket itself has no SO_REUSEADDR, whatever `options` says. So call let_reuse_address() before
// others should be able to bind beside connections that this socket makes or accepts. Thread: any.
core::Result<int> bind_alone(const sockaddr_storage& address, BindOptions options, Beside beside);

}  // namespace uiw::transport
