// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The options of our TCP sockets, and how to recognise a peer on this host. Thread: any.
#pragma once

#include <sys/socket.h>

namespace uiw::transport {

// True when `peer` is an address of this host (this network namespace), so that bytes to it never
// leave the machine. `local` is our own end.
bool is_local_peer(const sockaddr_storage& peer, const sockaddr_storage& local);

// Sets TCP_NODELAY: Nagle's algorithm would hold back the last FPDU of a message. Accepted sockets
// inherit it.
void send_at_once(int fd);

// Sets Reno and buffers of a fixed size, for connections within the host
// (doc/decisions/001-engine-io-uring.md). `connections`: how many such connections this process
// has, with this one; the buffers are large if these are few. Before the handshake, which fixes how
// far the window can ever open, pass 1. Options that the host does not allow stay as they were.
void tune_for_local_peer(int fd, unsigned connections);
// Sets the buffers only.
void size_buffers(int fd, unsigned connections);

// The name of a congestion control; empty: do not change it.
struct CongestionControl {
  char name[16] = {};  // TCP_CA_NAME_MAX
};

// Call it before listen(): accepted sockets begin with Reno. Changing it after the handshake is too
// late if the host's choice is BBR, which leaves a timer in the connection that paces it forever.
// Returns the host's choice, for leave_to_host().
CongestionControl begin_with_reno(int listener);
// For a connection that such a socket has accepted: restores the host's choice, unless `peer` is on
// this host.
void leave_to_host(int connection, const sockaddr_storage& peer, const CongestionControl& choice);

}  // namespace uiw::transport
