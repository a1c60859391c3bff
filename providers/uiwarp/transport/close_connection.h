// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// close() for TCP sockets that are connected, or connecting. A child that fork() made has them,
// too: then close() alone tells the peer nothing, whatever SO_LINGER says, until the child ends.
#pragma once

namespace uiw::transport {

enum class CloseBy {
  kFin,    // FIN; or RST where input is left that nobody has read, as by close()
  kReset,  // RST
};
void close_connection(int fd, CloseBy how = CloseBy::kFin);

// RST now; the descriptor stays open.
void cut_connection(int fd);

}  // namespace uiw::transport
