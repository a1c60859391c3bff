// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/destination.h"

#include <cstring>

#include "datagram/group.h"

namespace uiw::datagram {
namespace {

class ControlWriter {
 public:
  explicit ControlWriter(Destination& out) : out_(out) {}
  template <class Value>
  void add(int level, int type, const Value& value) {
    auto* const header = reinterpret_cast<cmsghdr*>(out_.control.data() + out_.control_size);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(header), &value, sizeof value);
    out_.control_size += CMSG_SPACE(sizeof value);
  }

 private:
  Destination& out_;
};

in_addr ip4_of(const in6_addr& gid) {
  in_addr address;
  std::memcpy(&address, gid.s6_addr + 12, sizeof address);
  return address;
}

}  // namespace

Destination make_destination(const Route& route, sa_family_t family) {
  Destination made;
  made.is_group = is_group(route.destination);
  made.gid_type = route.gid_type;
  const uint16_t port = made.is_group ? htons(kGroupPort) : 0;
  const bool ip4 = IN6_IS_ADDR_V4MAPPED(&route.destination);
  const bool link_local = IN6_IS_ADDR_LINKLOCAL(&route.destination);
  // Which interface a group is meant at IP knows only from its sender. A host's is for its routes
  // to find: one of this host is reached by another.
  const unsigned ifindex = made.is_group || link_local ? route.ifindex : 0;
  ControlWriter control(made);
  if (family == AF_INET) {
    auto& to = reinterpret_cast<sockaddr_in&>(made.address);
    made.address_size = sizeof to;
    to.sin_family = AF_INET;
    to.sin_port = port;
    to.sin_addr = ip4_of(route.destination);
    in_pktinfo info{};
    info.ipi_ifindex = static_cast<int>(ifindex);
    info.ipi_spec_dst = ip4_of(route.source);
    control.add(IPPROTO_IP, IP_PKTINFO, info);
  } else {
    auto& to = reinterpret_cast<sockaddr_in6&>(made.address);
    made.address_size = sizeof to;
    to.sin6_family = AF_INET6;
    to.sin6_port = port;
    to.sin6_addr = route.destination;
    if (!ip4) to.sin6_scope_id = ifindex;
    in6_pktinfo info{};
    info.ipi6_ifindex = ifindex;
    info.ipi6_addr = route.source;
    control.add(IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
  const int level = ip4 ? IPPROTO_IP : IPPROTO_IPV6;
  if (const int traffic_class = route.traffic_class)
    control.add(level, ip4 ? IP_TOS : IPV6_TCLASS, traffic_class);
  if (const int hop_limit = route.hop_limit)
    control.add(level, ip4 ? IP_TTL : IPV6_HOPLIMIT, hop_limit);
  return made;
}

}  // namespace uiw::datagram
