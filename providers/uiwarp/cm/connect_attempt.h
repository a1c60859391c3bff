// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The part of rdma_connect() that runs on the caller's thread: it makes a socket, starts to connect
// and, if TCP's handshake is over by then, sends the MPA Request. On loopback the handshake is
// over, because the peer's side of it runs inside connect(). Then the engine has nothing to do
// until the Reply comes.
#pragma once

#include "cm/startup_io.h"
#include "uiwarp/uiwarp-abi.h"

namespace uiw::cm {

struct ConnectAttempt {
  enum class Begin {
    kNow,
    kAsRefused,  // others wait for a listener there, and come first (cm/refused_attempts.h)
  };
  // `bound_fd`: the socket to connect, or -1 for a new one bound to `source`. The result holds the
  // descriptor. MPA `revision` 1 or 2, of a connection. Thread: any.
  static ConnectAttempt begin(const core::Settings& settings, int bound_fd,
                              const sockaddr_storage& source, const sockaddr_storage& destination,
                              int tos, Service service, const ConnParam& param, uint8_t revision,
                              Begin how);

  // What an instrument makes of it: nothing is begun.
  static ConnectAttempt meet(uiwarp_connect_fate fate, int bound_fd);

  uiwarp_connect_fate fate = UIWARP_CONNECT_GOES_ON;
  int fd = -1;             // -1: no socket, `error` or `fate` says why
  int error = 0;           // why it failed
  bool connected = false;  // TCP has taken the first bytes of the Request
  mpa::Wishes wishes;
  mpa::StartupFrame request;
  Outbox outbox;  // the part of it that TCP has not taken
};

}  // namespace uiw::cm
