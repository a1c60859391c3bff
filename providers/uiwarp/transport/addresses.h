// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Functions on IPv4 and IPv6 socket addresses, and the socket for an outgoing connection.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "core/gid.h"
#include "core/result.h"

namespace uiw::transport {

inline bool is_ip(const sockaddr_storage& address) {
  return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}
// sizeof the sockaddr_in or sockaddr_in6 that `address` holds; 0 for any other family.
socklen_t length_of(const sockaddr_storage& address);
// True for 127.0.0.0/8, ::1 and the IPv4-mapped form of the former.
bool is_loopback(const sockaddr_storage& address);
using core::port_of;
void set_port(sockaddr_storage& address, uint16_t port);
// 0.0.0.0 or ::
bool is_wildcard(const sockaddr_storage& address);
// 224.0.0.0/4 or ff00::/8
bool is_multicast(const sockaddr_storage& address);
// fe80::/10 without the interface (sin6_scope_id) that such an address needs.
bool is_link_local_without_scope(const sockaddr_storage& address);
// 127.0.0.1 or ::1 with the given port.
sockaddr_storage loopback(sa_family_t family, uint16_t port);
// Maps ::ffff:a.b.c.d, which an IPv4 connection accepted by a dual-stack listener has, to a.b.c.d.
sockaddr_storage without_v4_mapping(const sockaddr_storage& address);
// Same address, ignoring the port.
bool same_host(const sockaddr_storage& a, const sockaddr_storage& b);

// A TCP socket to connect from `source`; port 0 leaves the choice to connect(), so that as many
// connections can be made as there are (source, destination) pairs. CLOEXEC, non-blocking.
// Errno: EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE, ENFILE. `tos` -1: leave. Thread: any.
core::Result<int> open_connect_socket(const sockaddr_storage& source, int tos);
// IP_TOS or IPV6_TCLASS, whichever the family has. 0 or a positive errno.
int set_tos(int fd, sa_family_t family, int tos);

}  // namespace uiw::transport
