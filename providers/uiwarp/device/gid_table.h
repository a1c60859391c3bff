// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A device's GIDs as programs see them: of each address one for each type that the face has, side
// by side. What type of GID a program chooses says nothing to us, since all mean the same address.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "device/device.h"
#include "device/face.h"

namespace uiw::device {

struct Gid {
  in6_addr address;
  const char* type;  // as in sysfs

  bool is_free() const { return IN6_IS_ADDR_UNSPECIFIED(&address); }
};

// How many indices there are; some of them may be free.
uint32_t gid_count(const State& state, const Face& face);
// None: the table ends before this index.
std::optional<Gid> gid_at(const State& state, const Face& face, uint32_t index);
// Of the GIDs that an address has the last, as the kernel's rdma_cm prefers RoCE v2. None: it is
// not one of the device's.
std::optional<uint32_t> index_of_gid(const State& state, const Face& face, const in6_addr& address);

}  // namespace uiw::device
