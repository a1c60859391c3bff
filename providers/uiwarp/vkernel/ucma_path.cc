// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/ucma_path.h"

#include <endian.h>
#include <infiniband/sa.h>

#include <cstring>

#include "cm/rules.h"
#include "device/gid_table.h"
#include "verbs/path_mtu.h"

namespace uiw::vkernel {
namespace {

// What adapters' path records say on Ethernet.
constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kRate = 16;  // IB_RATE_100_GBPS, as the port's (verbs/device_attributes.cc)
constexpr uint8_t kExactly = 2;
constexpr uint32_t kFlags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;

// Of an address with several types of GIDs the last, as rdma_cm of the kernel prefers RoCE v2.
uint8_t gid_index(const device::Device& device, const uint8_t (&gid)[16]) {
  const device::State state = device::state_of(device);
  const device::Face& face = device::face();
  for (uint32_t i = device::gid_count(state, face); i > 0; --i) {
    if (std::memcmp(&device::gid_at(state, face, i - 1)->address, gid, sizeof gid) == 0)
      return static_cast<uint8_t>(i - 1);
  }
  return 0;  // one of 127.0.0.0/8 that is not on the interface
}

}  // namespace

void to_gid(uint8_t (&gid)[16], const sockaddr_storage& address) {
  std::memset(gid, 0, sizeof gid);
  if (address.ss_family == AF_INET6) {
    std::memcpy(gid, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, sizeof gid);
  } else if (address.ss_family == AF_INET) {
    gid[10] = gid[11] = 0xff;
    std::memcpy(gid + 12, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  }
}

bool has_path(const cm::Route& route) {
  return route.stage != cm::Stage::kNoPath && route.device != nullptr;
}

ibv_mtu path_mtu(const cm::Route& route) {
  return verbs::largest_ib_mtu(device::state_of(*route.device).mtu);
}

ib_path_rec_data path_record(const cm::Route& route) {
  ibv_path_record record{};
  to_gid(record.dgid.raw, route.destination);
  to_gid(record.sgid.raw, route.source);
  record.flowlabel_hoplimit = htobe32(kHopLimit);
  record.tclass = route.traffic_class;
  record.reversible_numpath = 1 << 7 | 1;
  record.pkey = htobe16(kDefaultPkey);
  record.mtu = static_cast<uint8_t>(kExactly << 6 | path_mtu(route));
  record.rate = kExactly << 6 | kRate;
  record.packetlifetime = kExactly << 6 | cm::kPacketLifetime;
  ib_path_rec_data data{};
  data.flags = kFlags;
  static_assert(sizeof data.path_rec == sizeof record);
  std::memcpy(&data.path_rec, &record, sizeof record);
  return data;
}

ib_user_path_rec user_path_record(const cm::Route& route) {
  ib_user_path_rec record{};
  to_gid(record.dgid, route.destination);
  to_gid(record.sgid, route.source);
  record.pkey = htobe16(kDefaultPkey);
  if (!has_path(route)) return record;
  record.reversible = 1;
  record.mtu = path_mtu(route);
  record.hop_limit = kHopLimit;
  record.traffic_class = route.traffic_class;
  record.numb_path = 1;
  record.mtu_selector = record.rate_selector = record.packet_life_time_selector = kExactly;
  record.rate = kRate;
  record.packet_life_time = cm::kPacketLifetime;
  return record;
}

ib_uverbs_ah_attr address_vector(const cm::Route& route) {
  uint8_t own[16];
  to_gid(own, route.source);
  ib_uverbs_ah_attr vector{};
  to_gid(vector.grh.dgid, route.destination);
  vector.grh.sgid_index = gid_index(*route.device, own);
  vector.grh.hop_limit = kHopLimit;
  vector.grh.traffic_class = route.traffic_class;
  vector.is_global = 1;
  vector.port_num = kPort;
  return vector;
}

}  // namespace uiw::vkernel
