// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What every TCP socket of ours is set to, and how to tell a peer on this host. Thread: any.
#pragma once

#include <sys/socket.h>

namespace uiw::transport {

// True when `peer` is an address of this host (this network namespace), so that bytes to it never
// leave the machine. `local` is our own end.
bool is_local_peer(const sockaddr_storage& peer, const sockaddr_storage& local);

// FPDUs go out whole and at once: Nagle's algorithm would hold back the last one of a message.
// What a socket accepts inherits it.
void send_at_once(int fd);

// Reno and buffers of a fixed size, for connections within the host
// (doc/decisions/001-engine-io-uring.md): large ones, or, where this process has many such
// connections, of which there are `connections` with this one, small ones. Before the handshake,
// which fixes how far the window can ever open: 1. What the host does not allow is left as it was.
void tune_for_local_peer(int fd, unsigned connections);
// The buffers alone.
void size_buffers(int fd, unsigned connections);

// A congestion control by its name; empty: none, it stays as it is.
struct CongestionControl {
  char name[16] = {};  // TCP_CA_NAME_MAX
};

// Before listen(): what the socket accepts begins with Reno. To change it after the handshake is
// too late where the host's choice is BBR: that leaves a timer in the connection which paces it for
// good. Returns the host's choice, for leave_to_host().
CongestionControl begin_with_reno(int listener);
// What that socket has accepted: has the host's choice again, unless `peer` is on this host.
void leave_to_host(int connection, const sockaddr_storage& peer, const CongestionControl& choice);

}  // namespace uiw::transport
