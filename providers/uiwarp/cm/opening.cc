// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "cm/opening.h"

#include <cerrno>

#include "transport/addresses.h"
#include "transport/listener.h"
#include "transport/socket_options.h"

namespace uiw::cm {

Opening Opening::begin(const core::Settings& settings, int bound_fd, const sockaddr_storage& source,
                       const sockaddr_storage& destination, int tos, const ConnParam& param,
                       uint8_t revision) {
  Opening opening;
  core::Result<int> fd = bound_fd >= 0 ? bound_fd : transport::open_connect_socket(source, tos);
  if (!fd) {
    opening.error = fd.error();
    return opening;
  }
  opening.fd = *fd;
  const bool local = transport::is_local_peer(destination, source);
  opening.wishes = wishes_for(settings, local, param);
  opening.wishes.revision = revision;
  opening.request = mpa::make_request(opening.wishes);
  set_private_data(opening.request, {param.private_data, param.private_data_len});
  opening.outbox.set(opening.request);
  opening.error = transport::Connector::begin(*fd, destination, local);
  if (opening.error != 0) return opening;

  const int error = opening.outbox.flush(*fd);
  switch (error) {
    case EAGAIN:  // not connected yet, or it takes no more
      opening.connected = opening.outbox.begun();
      break;
    case 0:
    case EPIPE:  // the peer has accepted, and gone
    case ECONNRESET:
      opening.connected = true;
      break;
    default:  // a socket tells an error once
      opening.error = error;
  }
  return opening;
}

}  // namespace uiw::cm
