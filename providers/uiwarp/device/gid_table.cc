// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/gid_table.h"

#include <cstring>

#include "core/gid.h"
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

}  // namespace uiw::device
