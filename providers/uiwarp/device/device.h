// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The RDMA devices of this host: one per network interface that is up and has an address,
// loopback included. Found once per process (libnl-route) and constant after that, because
// libibverbs identifies a device by name and modification time for the life of the process.
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uiw::device {

// RDMA limits; each is true: reached in a test, and one more gets the manual's errno.
struct Limits {
  static constexpr uint32_t kMaxQp = 16384;
  static constexpr uint32_t kMaxQpWr = 16384;
  static constexpr uint32_t kMaxSge = 16;  // send and receive, and RDMA Read sinks
  static constexpr uint32_t kMaxCq = 65536;
  static constexpr uint32_t kMaxCqe = 1u << 22;
  static constexpr uint32_t kMaxMr = 1u << 20;
  static constexpr uint32_t kMaxMw = 1u << 18;
  static constexpr uint32_t kMaxPd = 65536;
  static constexpr uint32_t kMaxSrq = 16384;
  static constexpr uint32_t kMaxSrqWr = 65536;
  static constexpr uint32_t kMaxReads = 128;  // IRD and ORD of one QP
  static constexpr uint32_t kMaxInline = 1024;
  static constexpr uint32_t kLeastInline =
      512;  // granted to who asks for less; rsockets ask for none and use it
  static constexpr uint32_t kMaxMessage = 1u << 31;
};

struct Device {
  std::string name;       // "uiw_lo", "uiw_eth0"; at most 63 octets
  std::string interface;  // "lo"
  unsigned ifindex = 0;
  uint32_t mtu = 0;  // of the interface
  uint8_t mac[6] = {};
  uint64_t node_guid = 0;      // host order; stable, distinct per interface, never 0
  std::vector<in6_addr> gids;  // one per address, IPv4-mapped ones first; never empty
  uint32_t uverbs_minor = 0;   // the N of /dev/infiniband/uverbsN that we show
};

// All devices, the same span for the life of the process. Thread-safe. Empty when none.
std::span<const Device> devices();

const Device* find_by_name(const char* name);
const Device* find_by_guid(uint64_t node_guid);
// The device an address of this host belongs to; null when it is not ours.
// All of 127.0.0.0/8 belongs to the loopback device.
const Device* find_by_address(const sockaddr_storage& address);

// The address this host would use to reach `to` (kernel routing). Errno: ENETUNREACH, EHOSTUNREACH,
// EAFNOSUPPORT. Returns 0 and sets `source` (port 0).
int route_source(const sockaddr_storage& to, sockaddr_storage& source);

// True when `address` is one of this host's own.
bool is_local_address(const sockaddr_storage& address);

}  // namespace uiw::device
