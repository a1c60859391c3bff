// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What rdma_connect() does itself: a socket, the SYN and, where TCP's handshake is over by then,
// the MPA Request. On loopback it is, for the peer's side of it runs inside connect(); then the
// engine has nothing to do until the Reply comes.
#pragma once

#include "cm/startup_io.h"

namespace uiw::cm {

struct Opening {
  // `bound_fd`: where to connect from, or -1: a new socket at `source`. Keeps the descriptor,
  // unless there is none. MPA `revision` 1 or 2. Thread: any.
  static Opening begin(const core::Settings& settings, int bound_fd, const sockaddr_storage& source,
                       const sockaddr_storage& destination, int tos, const ConnParam& param,
                       uint8_t revision);

  int fd = -1;             // -1: no socket, `error` says why
  int error = 0;           // why the connection cannot be
  bool connected = false;  // TCP has begun to take the Request
  mpa::Wishes wishes;
  mpa::StartupFrame request;
  Outbox outbox;  // with what TCP has not taken of it
};

}  // namespace uiw::cm
