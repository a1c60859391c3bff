// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The part of rdma_connect() that runs on the caller's thread. It makes a socket, starts to connect
// and, if TCP's handshake has finished by then, sends the MPA Request. On loopback it has, because
// the peer's side of the handshake runs inside connect(). Then the engine has nothing to do until
// the Reply comes.
#pragma once

#include "cm/startup_io.h"
#include "uiwarp/uiwarp-abi.h"

namespace uiw::cm {

struct ConnectAttempt {
  enum class Begin {
    kNow,
    kAsRefused,  // others wait for a listener at this address and go first (cm/refused_attempts.h)
  };
  // `bound_fd`: the socket to connect, or -1 for a new one bound to `source`. The result owns the
  // descriptor. `revision`: the MPA revision of a connection, 1 or 2. Thread: any.
  static ConnectAttempt begin(const core::Settings& settings, int bound_fd,
                              const sockaddr_storage& source, const sockaddr_storage& destination,
                              int tos, Service service, const ConnParam& param, uint8_t revision,
                              Begin how);

  // An attempt with the fate that an instrument has chosen: nothing is started.
  static ConnectAttempt meet(uiwarp_connect_fate fate, int bound_fd);

  uiwarp_connect_fate fate = UIWARP_CONNECT_GOES_ON;
  int fd = -1;             // -1: no socket, because of `error` or `fate`
  int error = 0;           // why it failed
  bool connected = false;  // TCP has taken the first bytes of the Request
  mpa::Wishes wishes;
  mpa::StartupFrame request;
  Outbox outbox;  // the part of the Request that TCP has not taken
};

}  // namespace uiw::cm
