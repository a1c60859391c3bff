// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// close() for TCP sockets that are connected or connecting. A forked child may also have such a
// socket. Then close() alone sends nothing to the peer until the child ends, whatever SO_LINGER
// says.
#pragma once

namespace uiw::transport {

enum class CloseBy {
  kFin,    // FIN, or RST if unread input is left, as by close()
  kReset,  // RST
};
void close_connection(int fd, CloseBy how = CloseBy::kFin);

// RST now; the descriptor stays open.
void cut_connection(int fd);

}  // namespace uiw::transport
