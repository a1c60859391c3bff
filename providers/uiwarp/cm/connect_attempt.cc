// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/connect_attempt.h"

#include <cerrno>

#include "cm/resolution.h"
#include "transport/addresses.h"
#include "transport/listener.h"
#include "transport/socket_options.h"

namespace uiw::cm {

ConnectAttempt ConnectAttempt::begin(const core::Settings& settings, int bound_fd,
                                     const sockaddr_storage& source,
                                     const sockaddr_storage& destination, int tos, Service service,
                                     const ConnParam& param, uint8_t revision, Begin how) {
  ConnectAttempt attempt;
  core::Result<int> fd = bound_fd >= 0 ? bound_fd : transport::open_connect_socket(source, tos);
  if (!fd) {
    attempt.error = fd.error();
    return attempt;
  }
  attempt.fd = *fd;
  const bool local = transport::is_local_peer(destination, source);
  const core::Bytes private_data{param.private_data, param.private_data_len};
  if (service == Service::kDatagrams) {
    attempt.request = make_resolution_request(private_data);
  } else {
    attempt.wishes = wishes_for(settings, local, param);
    attempt.wishes.revision = revision;
    attempt.request = mpa::make_request(attempt.wishes);
    set_private_data(attempt.request, private_data);
  }
  attempt.outbox.set(attempt.request);
  attempt.error = how == Begin::kAsRefused ? ECONNREFUSED
                                           : transport::Connector::begin(*fd, destination, local);
  if (attempt.error != 0) return attempt;

  const int error = attempt.outbox.flush(*fd);
  switch (error) {
    case EAGAIN:  // not connected yet, or the socket is full
      attempt.connected = attempt.outbox.begun();
      break;
    case 0:
    case EPIPE:  // the peer has accepted and gone
    case ECONNRESET:
      attempt.connected = true;
      break;
    default:  // a socket reports an error only once
      attempt.error = error;
  }
  return attempt;
}

ConnectAttempt ConnectAttempt::meet(uiwarp_connect_fate fate, int bound_fd) {
  ConnectAttempt attempt;
  attempt.fate = fate;
  attempt.fd = bound_fd;
  return attempt;
}

}  // namespace uiw::cm
