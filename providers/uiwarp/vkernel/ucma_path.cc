// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/ucma_path.h"

#include <endian.h>
#include <infiniband/sa.h>

#include <cstring>
#include <optional>

#include "cm/rules.h"
#include "core/gid.h"
#include "device/gid_table.h"
#include "device/path_mtu.h"
#include "transport/addresses.h"

namespace uiw::vkernel {
namespace {

// What adapters' path records say on Ethernet.
constexpr uint8_t kHopLimit = 64;
constexpr uint8_t kRate = 16;  // IB_RATE_100_GBPS, as the port's (verbs/device_attributes.cc)
constexpr uint8_t kExactly = 2;
constexpr uint32_t kFlags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;

void copy_gid(uint8_t (&out)[16], const in6_addr& gid) {
  static_assert(sizeof out == sizeof gid);
  std::memcpy(out, &gid, sizeof out);
}

}  // namespace

Gids gids_of(const cm::Route& route) {
  Gids gids{core::gid_of(route.source), core::gid_of(route.destination)};
  if (route.device == nullptr) return gids;
  const device::State state = device::state_of(*route.device);
  const std::optional<device::Gid> first = device::gid_at(state, device::face(), 0);
  if (!first) return gids;
  if (!device::index_of_gid(state, device::face(), gids.source)) gids.source = first->address;
  if (transport::is_loopback(route.destination) &&
      !device::index_of_gid(state, device::face(), gids.destination))
    gids.destination = first->address;
  return gids;
}

bool has_path(const cm::Route& route) {
  return route.stage != cm::Stage::kNoPath && route.device != nullptr;
}

ibv_mtu path_mtu(const cm::Route& route) {
  return device::largest_ib_mtu(device::state_of(*route.device).mtu);
}

ib_path_rec_data path_record(const cm::Route& route) {
  ibv_path_record record{};
  const Gids gids = gids_of(route);
  copy_gid(record.dgid.raw, gids.destination);
  copy_gid(record.sgid.raw, gids.source);
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
  const Gids gids = gids_of(route);
  copy_gid(record.dgid, gids.destination);
  copy_gid(record.sgid, gids.source);
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
  ib_uverbs_ah_attr vector{};
  const Gids gids = gids_of(route);
  copy_gid(vector.grh.dgid, gids.destination);
  vector.grh.sgid_index = static_cast<uint8_t>(
      device::index_of_gid(device::state_of(*route.device), device::face(), gids.source)
          .value_or(0));
  vector.grh.hop_limit = kHopLimit;
  vector.grh.traffic_class = route.traffic_class;
  vector.is_global = 1;
  vector.port_num = kPort;
  return vector;
}

}  // namespace uiw::vkernel
