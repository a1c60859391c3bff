// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datagram/grh.h"

#include <cstring>

#include "core/be.h"
#include "datagram/group.h"

namespace uiw::datagram {
namespace {

constexpr uint8_t kIbTransport = 0x1b;  // next header of a GRH (InfiniBand 8.3)
constexpr uint32_t kIp4Size = 20, kUdpSize = 8;
constexpr uint16_t kDontFragment = 0x4000;

uint16_t internet_checksum(const uint8_t* header) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < kIp4Size; i += 2) sum += core::load_be16(header + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

void store_ip4(const Envelope& envelope, uint32_t udp_payload, uint8_t* to) {
  to[0] = 0x45;
  to[1] = envelope.traffic_class;
  core::store_be16(to + 2, static_cast<uint16_t>(kIp4Size + kUdpSize + udp_payload));
  core::store_be16(to + 6, kDontFragment);
  to[8] = envelope.hop_limit;
  to[9] = IPPROTO_UDP;
  std::memcpy(to + 12, envelope.source.s6_addr + 12, 4);
  std::memcpy(to + 16, envelope.destination.s6_addr + 12, 4);
  core::store_be16(to + 10, internet_checksum(to));
}

void store_ip6(const Envelope& envelope, uint8_t next_header, uint32_t payload, uint8_t* to) {
  core::store_be32(to, 6u << 28 | uint32_t{envelope.traffic_class} << 20);
  core::store_be16(to + 4, static_cast<uint16_t>(payload));
  to[6] = next_header;
  to[7] = envelope.hop_limit;
  std::memcpy(to + 8, &envelope.source, 16);
  std::memcpy(to + 24, &envelope.destination, 16);
}

}  // namespace

Grh make_grh(const Envelope& envelope, GidType type, uint32_t payload) {
  Grh grh{};
  const uint32_t udp_payload = static_cast<uint32_t>(kHeaderSize) + payload;
  if (type == GidType::kV1) {
    store_ip6(envelope, kIbTransport, payload, grh.data());
    if (is_group(envelope.destination)) {
      const in6_addr group = v1_gid_of(envelope.destination);
      std::memcpy(grh.data() + 24, &group, 16);
    }
  } else if (IN6_IS_ADDR_V4MAPPED(&envelope.destination)) {
    store_ip4(envelope, udp_payload, grh.data() + kGrhSize - kIp4Size);
  } else {
    store_ip6(envelope, IPPROTO_UDP, kUdpSize + udp_payload, grh.data());
  }
  return grh;
}

uint8_t header_kind(const Envelope& envelope, GidType type) {
  if (type == GidType::kV1) return 0;
  return IN6_IS_ADDR_V4MAPPED(&envelope.source) ? 2 : 1;
}

}  // namespace uiw::datagram
