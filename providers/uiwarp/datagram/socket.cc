// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/socket.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/gid.h"
#include "core/qp_number.h"
#include "core/raw_sys.h"
#include "core/tuning.h"
#include "datagram/drops.h"
#include "datagram/group.h"
#include "device/gid_table.h"
#include "device/interface.h"

namespace uiw::datagram {

namespace sys = core::sys;

namespace {

constinit std::atomic<int> g_family{AF_UNSPEC};  // AF_UNSPEC: not asked yet
constinit Drops g_drops;

bool set(int fd, int level, int option, int value) {
  return sys::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// More than net.core.rmem_max needs CAP_NET_ADMIN.
void enlarge(int fd, int forced, int option) {
  if (!set(fd, SOL_SOCKET, forced, core::tuning::kDatagramBuffer))
    set(fd, SOL_SOCKET, option, core::tuning::kDatagramBuffer);
}

// Without path MTU discovery: a payload of the port's MTU may be a few bytes of header too many for
// one packet, and then goes in two.
core::Result<int> open_socket(sa_family_t family) {
  const int fd = sys::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
  if (fd < 0) return core::Errno{-fd};
  enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF);
  // Those of IPv4 for AF_INET6 too: datagrams from mapped addresses have them.
  for (int option : {IP_RECVTTL, IP_RECVTOS}) set(fd, IPPROTO_IP, option, 1);
  set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
  // Of the groups that others of this host have joined this socket shall get nothing.
  set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  if (family == AF_INET) {
    set(fd, IPPROTO_IP, IP_PKTINFO, 1);
  } else {
    for (int option : {IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS})
      set(fd, IPPROTO_IPV6, option, 1);
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
    set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  }
  return fd;
}

sockaddr_storage any_address(sa_family_t family, uint16_t port) {
  sockaddr_storage address{};
  address.ss_family = family;
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);  // at the same place in both
  return address;
}

core::Result<int> bind_or_close(int fd, const sockaddr_storage& address) {
  const socklen_t size = address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int error = sys::bind(fd, reinterpret_cast<const sockaddr*>(&address), size);
  if (error == 0) return fd;
  sys::close(fd);
  return core::Errno{-error};
}

int set_membership(int fd, const in6_addr& group, unsigned ifindex, bool member) {
  if (!IN6_IS_ADDR_V4MAPPED(&group)) {
    ipv6_mreq request{group, ifindex};
    return -sys::setsockopt(fd, IPPROTO_IPV6, member ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP,
                            &request, sizeof request);
  }
  ip_mreqn request{};
  std::memcpy(&request.imr_multiaddr, group.s6_addr + 12, 4);
  request.imr_ifindex = static_cast<int>(ifindex);
  return -sys::setsockopt(fd, IPPROTO_IP, member ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
                          sizeof request);
}

template <class Value>
Value value_of(const cmsghdr& header) {
  Value value;
  std::memcpy(&value, CMSG_DATA(&header), sizeof value);
  return value;
}

void take_packet_info(const in_pktinfo& info, Envelope& out) {
  out.destination = core::mapped(info.ipi_addr);
  out.ifindex = static_cast<uint32_t>(info.ipi_ifindex);
}

void take_packet_info(const in6_pktinfo& info, Envelope& out) {
  out.destination = info.ipi6_addr;
  out.ifindex = info.ipi6_ifindex;
}

void read_control(const msghdr& message, Envelope& out) {
  auto& writable = const_cast<msghdr&>(message);
  for (cmsghdr* header = CMSG_FIRSTHDR(&writable); header;
       header = CMSG_NXTHDR(&writable, header)) {
    if (header->cmsg_level == IPPROTO_IP) {
      switch (header->cmsg_type) {
        case IP_PKTINFO:
          take_packet_info(value_of<in_pktinfo>(*header), out);
          break;
        case IP_TOS:
          out.traffic_class = value_of<uint8_t>(*header);
          break;
        case IP_TTL:
          out.hop_limit = static_cast<uint8_t>(value_of<int>(*header));
          break;
      }
    } else if (header->cmsg_level == IPPROTO_IPV6) {
      switch (header->cmsg_type) {
        case IPV6_PKTINFO:
          take_packet_info(value_of<in6_pktinfo>(*header), out);
          break;
        case IPV6_TCLASS:
          out.traffic_class = static_cast<uint8_t>(value_of<int>(*header));
          break;
        case IPV6_HOPLIMIT:
          out.hop_limit = static_cast<uint8_t>(value_of<int>(*header));
          break;
      }
    }
  }
}

// A sender's number contains the port that it sends from (door.h), which the kernel lets nobody
// else of that host have. So no other user there can take a queue pair's number for its own, as
// with an adapter, which writes the number by itself.
bool is_from_its_port(const Header& header, const sockaddr_in6& from) {
  return core::port_of(header.from) == ntohs(from.sin6_port);  // at the same place in sockaddr_in
}

in6_addr gid_of(const sockaddr_in6& from) {
  if (from.sin6_family == AF_INET6) return from.sin6_addr;
  return core::mapped(reinterpret_cast<const sockaddr_in&>(from).sin_addr);
}

constexpr unsigned kMostAtOnce = 32;
// Packet info of one family, traffic class and hop limit.
constexpr size_t kControlRoom =
    CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo)) + 2 * CMSG_SPACE(sizeof(int));
struct alignas(cmsghdr) Control {
  uint8_t bytes[kControlRoom];
};

}  // namespace

Drops& drops() {
  return g_drops;
}

sa_family_t socket_family() {
  int family = g_family.load(std::memory_order_relaxed);
  if (family == AF_UNSPEC) {
    const int fd = sys::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
    if (fd >= 0) sys::close(fd);
    family = fd == -EAFNOSUPPORT ? AF_INET : AF_INET6;
    g_family.store(family, std::memory_order_relaxed);
  }
  return static_cast<sa_family_t>(family);
}

core::Result<int> open_port(uint16_t port) {
  const sa_family_t family = socket_family();
  core::Result<int> fd = open_socket(family);
  if (!fd) return fd;
  if (family == AF_INET6) set(*fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  return bind_or_close(*fd, any_address(family, port));
}

core::Result<int> open_group(const in6_addr& group, unsigned ifindex) {
  const bool ip4 = IN6_IS_ADDR_V4MAPPED(&group);
  core::Result<int> fd = open_socket(ip4 ? AF_INET : AF_INET6);
  if (!fd) return fd;
  set(*fd, SOL_SOCKET, SO_REUSEADDR, 1);
  fd = bind_or_close(*fd, core::socket_address_of(group, kGroupPort, ifindex));
  if (!fd) return fd;
  if (const int error = set_membership(*fd, group, ifindex, true)) {
    sys::close(*fd);
    return core::Errno{error};
  }
  return fd;
}

void leave_group(int fd, const in6_addr& group, unsigned ifindex) {
  set_membership(fd, group, ifindex, false);
}

Received receive(int fd, std::span<uint8_t> buffer, Receiver& receiver, uint64_t& bytes) {
  const auto room =
      static_cast<unsigned>(std::min<size_t>(kMostAtOnce, buffer.size() / kReceiveRoom));
  mmsghdr messages[kMostAtOnce];
  iovec places[kMostAtOnce];
  sockaddr_in6 sources[kMostAtOnce];
  Control controls[kMostAtOnce];
  for (unsigned i = 0; i < room; ++i) {
    places[i] = {buffer.data() + i * kReceiveRoom, kReceiveRoom};
    messages[i].msg_hdr = {.msg_name = &sources[i],
                           .msg_namelen = sizeof sources[i],
                           .msg_iov = &places[i],
                           .msg_iovlen = 1,
                           .msg_control = &controls[i],
                           .msg_controllen = sizeof controls[i],
                           .msg_flags = 0};
  }
  const long count = sys::recvmmsg(fd, messages, room, MSG_DONTWAIT);
  // An error is a datagram's that was sent from here (ICMP): as on the wire nobody is told.
  if (count <= 0) return Received::kAll;
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    const uint32_t length = messages[i].msg_len;
    bytes += length;
    const core::Bytes datagram(static_cast<const uint8_t*>(places[i].iov_base), length);
    const bool fits =
        !(messages[i].msg_hdr.msg_flags & MSG_TRUNC) && length <= kHeaderSize + kMostPayload;
    const std::optional<Header> header = fits ? load_header(datagram) : std::nullopt;
    if (!header) {
      drops().count(Drop::kMalformed);
      continue;
    }
    if (!is_from_its_port(*header, sources[i])) {
      drops().count(Drop::kForged);
      continue;
    }
    Arrival arrival{{}, *header, datagram.subspan(kHeaderSize)};
    arrival.envelope.source = gid_of(sources[i]);
    read_control(messages[i].msg_hdr, arrival.envelope);
    receiver.on_arrival(arrival);
  }
  return static_cast<unsigned>(count) == room ? Received::kSome : Received::kAll;
}

}  // namespace uiw::datagram
