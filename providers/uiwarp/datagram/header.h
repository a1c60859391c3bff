// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What stands in front of the payload in a UDP datagram between two UD queue pairs
// (doc/protocol.md, Datagrams).
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "core/be.h"
#include "core/bytes.h"

namespace uiw::datagram {

// What GIDs the sender's address handle names: decides how the receiver's GRH looks.
enum class GidType : uint8_t { kV1, kV2 };

struct Header {
  uint32_t to = 0;    // queue pair numbers: 24 bits
  uint32_t from = 0;  //
  uint32_t qkey = 0;
  GidType gid_type = GidType::kV1;
  bool solicited = false;
  bool has_immediate = false;
  uint32_t immediate = 0;  // as in ibv_wc: network byte order
};

inline constexpr size_t kHeaderSize = 24;
// The UDP port of all groups, since a group has no queue pair number that could say one.
inline constexpr uint16_t kGroupPort = 28513;
// No port has a larger MTU (device/path_mtu.h).
inline constexpr uint32_t kMostPayload = 4096;

namespace wire {
inline constexpr uint32_t kMagic = 0x75695544;  // "uiUD"
inline constexpr uint8_t kVersion = 1;
enum Flag : uint8_t { kImmediate = 1u << 0, kSolicited = 1u << 1, kGidV2 = 1u << 2 };
inline constexpr uint8_t kKnownFlags = kImmediate | kSolicited | kGidV2;
}  // namespace wire

inline void store(const Header& header, uint8_t* to) {
  uint8_t flags = 0;
  if (header.has_immediate) flags |= wire::kImmediate;
  if (header.solicited) flags |= wire::kSolicited;
  if (header.gid_type == GidType::kV2) flags |= wire::kGidV2;
  core::store_be32(to, wire::kMagic);
  to[4] = wire::kVersion;
  to[5] = flags;
  core::store_be16(to + 6, 0);
  core::store_be32(to + 8, header.to);
  core::store_be32(to + 12, header.from);
  core::store_be32(to + 16, header.qkey);
  std::memcpy(to + 20, &header.immediate, 4);
}

// None: too short, not ours, of another version, or with something in it that this version does not
// have.
inline std::optional<Header> load_header(core::Bytes datagram) {
  if (datagram.size() < kHeaderSize) return {};
  const uint8_t* const from = datagram.data();
  const uint8_t flags = from[5];
  if (core::load_be32(from) != wire::kMagic || from[4] != wire::kVersion) return {};
  if (flags & ~wire::kKnownFlags || core::load_be16(from + 6) != 0) return {};
  Header header;
  header.to = core::load_be32(from + 8);
  header.from = core::load_be32(from + 12);
  if ((header.to | header.from) >> 24) return {};
  header.qkey = core::load_be32(from + 16);
  header.gid_type = flags & wire::kGidV2 ? GidType::kV2 : GidType::kV1;
  header.solicited = flags & wire::kSolicited;
  header.has_immediate = flags & wire::kImmediate;
  std::memcpy(&header.immediate, from + 20, 4);
  return header;
}

}  // namespace uiw::datagram
