// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// GIDs are IP addresses; IPv4 addresses appear as ::ffff:a.b.c.d.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace uiw::core {

// ::ffff:a.b.c.d
in6_addr mapped(in_addr ipv4);
// The address in `address` as an in6_addr, IPv4 mapped; false for other families.
bool address_of(const sockaddr_storage& address, in6_addr& out);
// The same. All zero for other families.
in6_addr gid_of(const sockaddr_storage& address);
// The reverse: an IPv4 address for ::ffff:a.b.c.d. `ifindex`: the interface of a link-local
// address.
sockaddr_storage socket_address_of(const in6_addr& gid, uint16_t port, unsigned ifindex);

// The address of a GID as text.
struct GidText {
  char text[INET6_ADDRSTRLEN] = "";
};
GidText text_of(const in6_addr& gid);

// Whether the address is valid beyond one link: not fe80::/10 or 169.254.0.0/16 (RFC 3927).
bool is_routed(const in6_addr& address);

// The port in host order; 0 for families other than IPv4 and IPv6.
uint16_t port_of(const sockaddr_storage& address);

// "10.0.0.1:7174", "[fd00::1]:7174"; empty for another family.
struct EndpointText {
  char text[INET6_ADDRSTRLEN + sizeof "[]:65535"] = "";
};
EndpointText text_of(const sockaddr_storage& address);

}  // namespace uiw::core
