// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the kernel says of network interfaces. Private to device/.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct nl_cache;
struct nl_sock;

namespace uiw::device {

struct Interface {
  std::string name;
  unsigned ifindex = 0;
  bool up = false;
  bool carrier = false;  // up, and something at the other end of the cable
  bool is_bridge = false;
  uint32_t mtu = 0;
  uint8_t mac[6] = {};
  bool has_mac = false;             // an Ethernet-like address of 6 octets
  std::vector<in6_addr> addresses;  // in the kernel's order, IPv4 mapped to ::ffff:a.b.c.d
};

// Every interface of this network namespace, asked from the kernel by libnl-route.
// 0 or a positive errno. libnl uses libc's socket(): our own preload library takes only
// NETLINK_RDMA there and librspreload only TCP sockets, so neither minds.
int read_interfaces(std::vector<Interface>& interfaces);

// The same, kept up to date by what the kernel tells. Reading it takes none of the kernel's locks,
// under which a full answer may wait long: the engine thread can do it. Not thread-safe.
class InterfaceWatch {
 public:
  // Null with errno in `error`.
  static std::unique_ptr<InterfaceWatch> start(int& error);
  ~InterfaceWatch();
  // Readable when there is something to read().
  int fd() const;
  // Takes in what the kernel has told since. When it told more than fits into the socket
  // (ENOBUFS), asks for everything. 0 or a positive errno.
  int read(std::vector<Interface>& interfaces);

 private:
  InterfaceWatch() = default;
  int open();
  bool take_in();
  nl_sock* told_ = nullptr;  // where the kernel tells of changes
  nl_cache* links_ = nullptr;
  nl_cache* addresses_ = nullptr;
};

}  // namespace uiw::device
