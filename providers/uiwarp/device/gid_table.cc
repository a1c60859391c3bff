// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/gid_table.h"

namespace uiw::device {

uint32_t gid_count(const State& state, const Face& face) {
  return static_cast<uint32_t>(state.addresses.size() * face.gid_types.size());
}

std::optional<Gid> gid_at(const State& state, const Face& face, uint32_t index) {
  if (index >= gid_count(state, face)) return {};
  const size_t types = face.gid_types.size();
  return Gid{state.addresses[index / types], face.gid_types[index % types]};
}

}  // namespace uiw::device
