// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// One TCP segment as an IP packet, and blocks of a pcapng file. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/bytes.h"
#include "trace/record.h"

namespace uiw::trace {

// TCP's flags, RFC 9293 3.1.
inline constexpr uint8_t kSyn = 0x02, kPsh = 0x08, kAck = 0x10;

struct Segment {
  Addresses addresses;  // local: who sends it
  uint32_t sequence = 0, acknowledged = 0;
  uint8_t flags = 0;
  core::Bytes payload;
};

// The most payload that a packet has room for: both lengths that IP has say 16 bits.
uint32_t most_payload(const Addresses& addresses);
// Bytes of headers before it.
uint32_t header_size(const Segment& segment);
// IPv4 or IPv6 packet, checksums included, in the place of what is in `out`.
void encode(const Segment& segment, std::vector<uint8_t>& out);

// Blocks of pcapng, little-endian; each is put behind what is in `out`.
void put_section(std::vector<uint8_t>& out, std::string_view comment);
// Whose packets begin with IP's header and have times in nanoseconds.
void put_interface(std::vector<uint8_t>& out, std::string_view name);
// `comment` may be empty.
void put_packet(std::vector<uint8_t>& out, int64_t time, core::Bytes packet,
                std::string_view comment);

}  // namespace uiw::trace
