// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/gid_table.h"

#include <cstring>

#include "device/interface.h"

namespace uiw::device {

uint32_t gid_count(const State& state, const Face& face) {
  return static_cast<uint32_t>(state.addresses.size() * face.gid_types.size());
}

std::optional<Gid> gid_at(const State& state, const Face& face, uint32_t index) {
  if (index >= gid_count(state, face)) return {};
  const size_t types = face.gid_types.size();
  return Gid{state.addresses[index / types], face.gid_types[index % types]};
}

std::optional<uint32_t> index_of_gid(const State& state, const Face& face,
                                     const in6_addr& address) {
  for (uint32_t i = gid_count(state, face); i > 0; --i) {
    const in6_addr gid = gid_at(state, face, i - 1)->address;
    if (std::memcmp(&gid, &address, sizeof gid) == 0) return i - 1;
  }
  return {};
}

in6_addr gid_of(const sockaddr_storage& address) {
  in6_addr gid{};
  address_of(address, gid);
  return gid;
}

sockaddr_storage socket_address_of(const in6_addr& gid, uint16_t port, unsigned ifindex) {
  sockaddr_storage address{};
  if (IN6_IS_ADDR_V4MAPPED(&gid)) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, gid.s6_addr + 12, sizeof v4.sin_addr);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = gid;
    if (IN6_IS_ADDR_LINKLOCAL(&gid) || IN6_IS_ADDR_MC_LINKLOCAL(&gid)) v6.sin6_scope_id = ifindex;
  }
  return address;
}

}  // namespace uiw::device
