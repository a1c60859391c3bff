// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// From network interfaces to RDMA devices: naming, GUIDs, GIDs. Private to device/. Pure.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace uiw::device {

// What the kernel says of one network interface.
struct Interface {
  std::string name;
  unsigned ifindex = 0;
  unsigned flags = 0;  // IFF_*
  uint32_t mtu = 0;
  uint8_t mac[6] = {};
  bool has_mac = false;             // an Ethernet-like address of 6 octets
  std::vector<in6_addr> addresses;  // in the kernel's order, IPv4 mapped to ::ffff:a.b.c.d
};

// The kernel numbers real uverbs devices from 0 upwards: no host has so many that ours clash.
inline constexpr uint32_t kFirstUverbsMinor = 250;

// The devices for these interfaces: those that are up and have an address, in order of ifindex.
std::vector<Device> make_devices(std::span<const Interface> interfaces);

// Every interface of this network namespace, asked from the kernel by libnl-route.
// 0 or a positive errno. libnl uses libc's socket(): our own preload library refuses only
// NETLINK_RDMA there and librspreload takes only TCP sockets, so neither minds.
int read_interfaces(std::vector<Interface>& interfaces);

// ::ffff:a.b.c.d
in6_addr mapped(in_addr ipv4);
// The address in `address` as an in6_addr, IPv4 mapped; false for other families.
bool address_of(const sockaddr_storage& address, in6_addr& out);

}  // namespace uiw::device
