// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Takes a TCP port from all other processes of this host without listening at it.
#pragma once

#include "core/result.h"

namespace uiw::rendezvous {

// A socket that is bound at every address, IPv4 ones too, to a port of UIWARP_PORTS or, without
// that setting, to one that the kernel chooses. Ports that only connections in TIME_WAIT hold are
// the last choice. EADDRINUSE: none is free; EMFILE and the like. Thread: any.
core::Result<int> reserve_port();

}  // namespace uiw::rendezvous
