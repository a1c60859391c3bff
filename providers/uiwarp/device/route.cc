// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/gid.h"
#include "core/raw_sys.h"
#include "device/device.h"
#include "device/interface.h"

namespace uiw::device {
namespace {

namespace sys = core::sys;

constexpr uint16_t kDiscardPort = 9;  // never used: connecting a UDP socket sends nothing

socklen_t size_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

void set_port(sockaddr_storage& address, uint16_t port) {
  if (address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  }
}

// 127.0.0.1 and ::1 are reached from themselves, while their interface is up. (Of an interface's
// further addresses that is not certain, nor of others that this host has: they may be routed.)
bool is_reached_from_itself(const sockaddr_storage& to) {
  in6_addr wanted;
  const in6_addr localhost = core::mapped({htonl(INADDR_LOOPBACK)});
  if (!core::address_of(to, wanted) ||
      (std::memcmp(&wanted, &localhost, sizeof wanted) != 0 &&
       std::memcmp(&wanted, &in6addr_loopback, sizeof wanted) != 0))
    return false;
  const Device* const device = find_by_address(to);
  if (device == nullptr) return false;
  const State state = state_of(*device);
  return state.active && std::ranges::any_of(state.addresses, [&](const in6_addr& address) {
           return std::memcmp(&address, &wanted, sizeof address) == 0;
         });
}

}  // namespace

int route_source(const sockaddr_storage& to, sockaddr_storage& source) {
  if (to.ss_family != AF_INET && to.ss_family != AF_INET6) return EAFNOSUPPORT;
  // Asking takes 5 us and more.
  if (is_reached_from_itself(to)) {
    source = to;
    set_port(source, 0);
    return 0;
  }
  // The kernel chooses route and source address when a UDP socket is connected.
  int fd = sys::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
  if (fd < 0) return -fd;
  sockaddr_storage target = to;
  set_port(target, kDiscardPort);
  int result = sys::connect(fd, reinterpret_cast<sockaddr*>(&target), size_of(target));
  if (result == 0) {
    sockaddr_storage chosen{};
    socklen_t size = sizeof chosen;
    result = sys::getsockname(fd, reinterpret_cast<sockaddr*>(&chosen), &size);
    if (result == 0) {
      set_port(chosen, 0);
      source = chosen;
    }
  }
  sys::close(fd);
  // EACCES: a broadcast address, EINVAL: a link-local one without a scope. No host is behind
  // either.
  if (result == -EACCES || result == -EINVAL) return EHOSTUNREACH;
  return -result;
}

bool is_local_address(const sockaddr_storage& address) {
  in6_addr wanted;
  if (!core::address_of(address, wanted) || IN6_IS_ADDR_UNSPECIFIED(&wanted)) return false;
  if (IN6_IS_ADDR_V4MAPPED(&wanted) && std::memcmp(wanted.s6_addr + 12, "\0\0\0\0", 4) == 0) {
    return false;
  }
  if (find_by_address(address) != nullptr) return true;
  // An address without a device: a local one is reached from itself.
  sockaddr_storage source;
  in6_addr chosen;
  return route_source(address, source) == 0 && core::address_of(source, chosen) &&
         std::memcmp(&chosen, &wanted, sizeof chosen) == 0;
}

}  // namespace uiw::device
