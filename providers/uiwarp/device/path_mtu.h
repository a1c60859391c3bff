// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The MTU of a port as InfiniBand counts it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace uiw::device {

// The largest one that packets of an interface with this MTU have room for.
constexpr ibv_mtu largest_ib_mtu(uint32_t interface_mtu) {
  ibv_mtu mtu = IBV_MTU_256;
  while (mtu < IBV_MTU_4096 && (256u << mtu) <= interface_mtu) mtu = static_cast<ibv_mtu>(mtu + 1);
  return mtu;
}

constexpr uint32_t bytes_of(ibv_mtu mtu) {
  return 128u << mtu;
}

}  // namespace uiw::device
