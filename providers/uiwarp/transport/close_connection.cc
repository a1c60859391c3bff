// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/close_connection.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "core/raw_sys.h"

namespace uiw::transport {

namespace sys = core::sys;

// tcp(7): connecting to AF_UNSPEC "disconnects" a socket, and the peer gets a reset.
void cut_connection(int fd) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  sys::connect(fd, &nobody, sizeof nobody);
}

void close_connection(int fd, CloseBy how) {
  int unread = 0;
  if (how == CloseBy::kReset || (sys::ioctl(fd, FIONREAD, &unread) == 0 && unread > 0))
    cut_connection(fd);
  else
    sys::shutdown(fd, SHUT_RDWR);
  sys::close(fd);
}

}  // namespace uiw::transport
