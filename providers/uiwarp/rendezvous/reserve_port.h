// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Reserves a TCP port against all other processes of this host without listening.
#pragma once

#include "core/result.h"

namespace uiw::rendezvous {

// Returns a socket bound to a port at every address, including IPv4. The port is one of
// UIWARP_PORTS or, without that setting, chosen by the kernel. Ports that only connections in
// TIME_WAIT hold are the last choice. EADDRINUSE: none is free; EMFILE and the like. Thread: any.
core::Result<int> reserve_port();

}  // namespace uiw::rendezvous
