// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "transport/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "core/raw_sys.h"
#include "core/tuning.h"
#include "transport/addresses.h"

namespace uiw::transport {
namespace {

namespace sys = core::sys;
namespace tuning = core::tuning;

// The kernel allocates twice this size. If the host allows less (net.core.rmem_max of a stock
// kernel before 6.18 is 208 KiB), the kernel's own tuning is better, which goes up to tcp_rmem[2].
struct Buffer {
  const int option;
  const int size;
  std::atomic<int> allowed{0};  // by the host: 1 yes, -1 no, 0 not tested yet
};
constinit Buffer g_buffers[] = {{SO_SNDBUF, tuning::kSendBuffer},
                                {SO_RCVBUF, tuning::kReceiveBuffer}};

const sockaddr_in& as_v4(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in&>(address);
}
const sockaddr_in6& as_v6(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in6&>(address);
}

bool same_host_part(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET) return as_v4(a).sin_addr.s_addr == as_v4(b).sin_addr.s_addr;
  return a.ss_family == AF_INET6 &&
         memcmp(&as_v6(a).sin6_addr, &as_v6(b).sin6_addr, sizeof(in6_addr)) == 0;
}

// A socket can be bound only to addresses of this host; this test needs no netlink.
bool can_bind(sockaddr_storage address) {
  if (address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = 0;
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = 0;
  }
  int fd = sys::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  int result = sys::bind(fd, reinterpret_cast<const sockaddr*>(&address), length_of(address));
  sys::close(fd);
  return result == 0;
}

// ... unless the host allows binding foreign addresses (net.ipv4.ip_nonlocal_bind): then an address
// from the ranges reserved for documentation (RFC 5737, RFC 3849), which no host has, can be bound
// as well.
bool binding_proves_nothing(const sockaddr_storage& peer) {
  const bool v4 = peer.ss_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&as_v6(peer).sin6_addr);
  sockaddr_storage nobody{};
  nobody.ss_family = v4 ? AF_INET : AF_INET6;
  if (v4) {
    reinterpret_cast<sockaddr_in&>(nobody).sin_addr.s_addr = htonl(0xc0000201);  // 192.0.2.1
  } else {
    const uint8_t documentation[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    memcpy(&reinterpret_cast<sockaddr_in6&>(nobody).sin6_addr, documentation, 16);
  }
  return can_bind(nobody);
}

// Tries it on a temporary socket, because setting the option ends the kernel's own tuning of a
// socket forever.
bool host_allows(int option, int size) {
  int fd = sys::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fd = sys::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sys::setsockopt(fd, SOL_SOCKET, option, &size, sizeof size);
  int reached = 0;
  socklen_t length = sizeof reached;
  sys::getsockopt(fd, SOL_SOCKET, option, &reached, &length);
  sys::close(fd);
  return reached >= 2 * size;  // the kernel doubles it
}

// Tested once per process: the host's limits do not change.
bool host_allows(Buffer& buffer) {
  int answer = buffer.allowed.load(std::memory_order_relaxed);
  if (answer == 0) {
    answer = host_allows(buffer.option, buffer.size) ? 1 : -1;
    buffer.allowed.store(answer, std::memory_order_relaxed);
  }
  return answer > 0;
}

constexpr CongestionControl kReno{"reno"};

bool set(int fd, const CongestionControl& wanted) {
  return sys::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, wanted.name,
                         static_cast<socklen_t>(strlen(wanted.name))) == 0;
}

}  // namespace

bool is_local_peer(const sockaddr_storage& peer, const sockaddr_storage& local) {
  if (length_of(peer) == 0) return false;
  if (is_loopback(peer) || same_host_part(peer, local)) return true;
  return can_bind(peer) && !binding_proves_nothing(peer);
}

void send_at_once(int fd) {
  const int on = 1;
  sys::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void tune_for_local_peer(int fd, unsigned connections) {
  set(fd, kReno);
  size_buffers(fd, connections);
}

void size_buffers(int fd, unsigned connections) {
  for (Buffer& buffer : g_buffers) {
    const int size =
        connections <= tuning::kFewConnections ? buffer.size : tuning::kSharedSocketBuffer;
    if (host_allows(buffer)) sys::setsockopt(fd, SOL_SOCKET, buffer.option, &size, sizeof size);
  }
}

CongestionControl begin_with_reno(int listener) {
  CongestionControl choice;
  socklen_t size = sizeof choice.name - 1;
  if (sys::getsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, choice.name, &size) != 0) return {};
  const bool changed = strcmp(choice.name, kReno.name) != 0 && set(listener, kReno);
  return changed ? choice : CongestionControl{};
}

void leave_to_host(int connection, const sockaddr_storage& peer, const CongestionControl& choice) {
  if (choice.name[0] != 0 && !is_local_peer(peer, {})) set(connection, choice);
}

}  // namespace uiw::transport
