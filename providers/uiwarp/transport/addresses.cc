// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/addresses.h"

#include <cerrno>
#include <cstring>

#include "core/be.h"
#include "core/raw_sys.h"

namespace uiw::transport {
namespace {

const sockaddr_in& v4(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in&>(address);
}
const sockaddr_in6& v6(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in6&>(address);
}

}  // namespace

socklen_t length_of(const sockaddr_storage& address) {
  switch (address.ss_family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    default:
      return 0;
  }
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return (ntohl(v4(address).sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  if (address.ss_family != AF_INET6) return false;
  const in6_addr& host = v6(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&host) || (IN6_IS_ADDR_V4MAPPED(&host) && host.s6_addr[12] == 127);
}

void set_port(sockaddr_storage& address, uint16_t port) {
  if (address.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  }
}

bool is_wildcard(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return v4(address).sin_addr.s_addr == htonl(INADDR_ANY);
  if (address.ss_family == AF_INET6) return IN6_IS_ADDR_UNSPECIFIED(&v6(address).sin6_addr);
  return false;
}

bool is_multicast(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return IN_MULTICAST(ntohl(v4(address).sin_addr.s_addr));
  if (address.ss_family == AF_INET6) return IN6_IS_ADDR_MULTICAST(&v6(address).sin6_addr);
  return false;
}

bool is_link_local_without_scope(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(address).sin6_addr) &&
         v6(address).sin6_scope_id == 0;
}

sockaddr_storage loopback(sa_family_t family, uint16_t port) {
  sockaddr_storage address{};
  address.ss_family = family;
  if (family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
  }
  set_port(address, port);
  return address;
}

sockaddr_storage without_v4_mapping(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6(address).sin6_addr)) {
    return address;
  }
  sockaddr_storage out{};
  auto& to = reinterpret_cast<sockaddr_in&>(out);
  to.sin_family = AF_INET;
  to.sin_port = v6(address).sin6_port;
  std::memcpy(&to.sin_addr, v6(address).sin6_addr.s6_addr + 12, sizeof to.sin_addr);
  return out;
}

bool same_host(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) return v4(a).sin_addr.s_addr == v4(b).sin_addr.s_addr;
  return IN6_ARE_ADDR_EQUAL(&v6(a).sin6_addr, &v6(b).sin6_addr) &&
         v6(a).sin6_scope_id == v6(b).sin6_scope_id;
}

int set_tos(int fd, sa_family_t family, int tos) {
  if (family == AF_INET) return -core::sys::setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
  return -core::sys::setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
}

core::Result<int> open_connect_socket(const sockaddr_storage& source, int tos) {
  const int fd =
      core::sys::socket(source.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd < 0) return core::Errno{-fd};
  const int on = 1;
  core::sys::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (port_of(source) == 0) {
    core::sys::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  }
  if (tos >= 0) set_tos(fd, source.ss_family, tos);
  const int error =
      core::sys::bind(fd, reinterpret_cast<const sockaddr*>(&source), length_of(source));
  if (error < 0) {
    core::sys::close(fd);
    return core::Errno{-error};
  }
  return fd;
}

}  // namespace uiw::transport
