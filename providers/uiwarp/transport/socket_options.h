// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What every TCP socket of ours is set to, and how to tell a peer on this host. Thread: any.
#pragma once

#include <sys/socket.h>

namespace uiw::transport {

// True when `peer` is an address of this host (this network namespace), so that octets to it never
// leave the machine. `local` is our own end.
bool is_local_peer(const sockaddr_storage& peer, const sockaddr_storage& local);

// Reno and buffers of a fixed size, for connections within the host
// (doc/decisions/001-engine-io-uring.md): large ones, or, where this process has many such
// connections, of which there are `connections` with this one, small ones. Before the handshake,
// which fixes how far the window can ever open: 1. What the host does not allow is left as it was.
void tune_for_local_peer(int fd, unsigned connections);

}  // namespace uiw::transport
