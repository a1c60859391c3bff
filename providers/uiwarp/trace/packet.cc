// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/packet.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "core/be.h"

namespace uiw::trace {
namespace {

constexpr uint32_t kIpv4Header = 20, kIpv6Header = 40, kTcpHeader = 20, kMostLength = 65535;
constexpr uint8_t kHopLimit = 64;
// Of a SYN: the largest segments, and a window of 1 GiB, so that no FPDU seems to exceed it.
constexpr uint8_t kSynOptions[] = {2, 4, 0xff, 0xd7, 1, 3, 3, 14};
constexpr uint16_t kWindow = 65535;

bool is_ipv4(const uint8_t (&address)[16]) {
  in6_addr six;
  std::memcpy(&six, address, sizeof six);
  return IN6_IS_ADDR_V4MAPPED(&six);
}
bool is_ipv4(const Addresses& at) {
  return is_ipv4(at.local) && is_ipv4(at.peer);
}

// RFC 1071. Of what is added up in parts only the last may have an odd number of bytes.
uint64_t add_up(uint64_t sum, core::Bytes octets) {
  size_t at = 0;
  for (; at + 4 <= octets.size(); at += 4) sum += core::load_be32(octets.data() + at);
  for (; at + 2 <= octets.size(); at += 2) sum += core::load_be16(octets.data() + at);
  if (at < octets.size()) sum += uint64_t{octets[at]} << 8;
  return sum;
}
uint16_t checksum(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

void put_ipv4(uint8_t* p, const Addresses& at, uint32_t tcp_size) {
  std::memset(p, 0, kIpv4Header);
  p[0] = 0x45;
  core::store_be16(p + 2, static_cast<uint16_t>(kIpv4Header + tcp_size));
  p[6] = 0x40;  // not to be fragmented
  p[8] = kHopLimit;
  p[9] = IPPROTO_TCP;
  std::memcpy(p + 12, at.local + 12, 4);
  std::memcpy(p + 16, at.peer + 12, 4);
  core::store_be16(p + 10, checksum(add_up(0, {p, kIpv4Header})));
}

void put_ipv6(uint8_t* p, const Addresses& at, uint32_t tcp_size) {
  std::memset(p, 0, kIpv6Header);
  p[0] = 0x60;
  core::store_be16(p + 4, static_cast<uint16_t>(tcp_size));
  p[6] = IPPROTO_TCP;
  p[7] = kHopLimit;
  std::memcpy(p + 8, at.local, 16);
  std::memcpy(p + 24, at.peer, 16);
}

template <class T>
void put(std::vector<uint8_t>& out, T value) {
  const auto* const from = reinterpret_cast<const uint8_t*>(&value);  // little-endian host: be.h
  out.insert(out.end(), from, from + sizeof value);
}

void put_padded(std::vector<uint8_t>& out, core::Bytes octets) {
  out.insert(out.end(), octets.begin(), octets.end());
  out.resize((out.size() + 3) & ~size_t{3});
}

void put_option(std::vector<uint8_t>& out, uint16_t code, std::string_view value) {
  if (value.empty()) return;
  value = value.substr(0, kMostLength);
  put(out, code);
  put(out, static_cast<uint16_t>(value.size()));
  put_padded(out, {reinterpret_cast<const uint8_t*>(value.data()), value.size()});
}

constexpr uint16_t kEndOfOptions = 0, kComment = 1;

// A block has its length at both ends.
template <class Body>
void put_block(std::vector<uint8_t>& out, uint32_t type, Body body) {
  const size_t start = out.size();
  put(out, type);
  put(out, uint32_t{0});
  body();
  const auto size = static_cast<uint32_t>(out.size() + 4 - start);
  put(out, size);
  std::memcpy(out.data() + start + 4, &size, sizeof size);
}

}  // namespace

uint32_t most_payload(const Addresses& addresses) {
  return is_ipv4(addresses) ? kMostLength - kIpv4Header - kTcpHeader : kMostLength - kTcpHeader;
}

uint32_t header_size(const Segment& segment) {
  return (is_ipv4(segment.addresses) ? kIpv4Header : kIpv6Header) + kTcpHeader +
         (segment.flags & kSyn ? sizeof kSynOptions : 0);
}

void encode(const Segment& segment, std::vector<uint8_t>& out) {
  const Addresses& at = segment.addresses;
  const uint32_t headers = header_size(segment);
  const uint32_t ip = is_ipv4(at) ? kIpv4Header : kIpv6Header;
  out.resize(headers + segment.payload.size());
  const auto tcp_size = static_cast<uint32_t>(out.size()) - ip;
  uint8_t* const tcp = out.data() + ip;
  core::store_be16(tcp, at.local_port);
  core::store_be16(tcp + 2, at.peer_port);
  core::store_be32(tcp + 4, segment.sequence);
  core::store_be32(tcp + 8, segment.acknowledged);
  tcp[12] = static_cast<uint8_t>((headers - ip) / 4 << 4);
  tcp[13] = segment.flags;
  core::store_be16(tcp + 14, kWindow);
  std::memset(tcp + 16, 0, 4);
  if (segment.flags & kSyn) std::memcpy(tcp + kTcpHeader, kSynOptions, sizeof kSynOptions);
  std::ranges::copy(segment.payload, out.data() + headers);
  // The pseudo header of RFC 9293 3.1 and RFC 8200 8.1.
  const size_t first = is_ipv4(at) ? 12 : 0;
  uint64_t sum = add_up(tcp_size + IPPROTO_TCP, {at.local + first, 16 - first});
  sum = add_up(sum, {at.peer + first, 16 - first});
  core::store_be16(tcp + 16, checksum(add_up(sum, {tcp, tcp_size})));
  is_ipv4(at) ? put_ipv4(out.data(), at, tcp_size) : put_ipv6(out.data(), at, tcp_size);
}

void put_section(std::vector<uint8_t>& out, std::string_view comment) {
  constexpr uint32_t kSectionHeader = 0x0a0d0d0a, kByteOrder = 0x1a2b3c4d;
  constexpr uint16_t kApplication = 4;
  put_block(out, kSectionHeader, [&] {
    put(out, kByteOrder);
    put(out, uint16_t{1});  // version 1.0
    put(out, uint16_t{0});
    put(out, int64_t{-1});  // to the end of the file
    put_option(out, kComment, comment);
    put_option(out, kApplication, "uiwarp trace");
    put(out, uint32_t{kEndOfOptions});
  });
}

void put_interface(std::vector<uint8_t>& out, std::string_view name) {
  constexpr uint32_t kInterfaceDescription = 1;
  constexpr uint16_t kRawIp = 101, kName = 2, kResolution = 9;
  put_block(out, kInterfaceDescription, [&] {
    put(out, kRawIp);
    put(out, uint16_t{0});
    put(out, uint32_t{0});  // packets are whole
    put_option(out, kName, name);
    put_option(out, kResolution, "\x09");  // 10^-9 s
    put(out, uint32_t{kEndOfOptions});
  });
}

void put_packet(std::vector<uint8_t>& out, int64_t time, core::Bytes packet,
                std::string_view comment) {
  constexpr uint32_t kEnhancedPacket = 6;
  put_block(out, kEnhancedPacket, [&] {
    put(out, uint32_t{0});  // of the first interface
    put(out, static_cast<uint32_t>(static_cast<uint64_t>(time) >> 32));
    put(out, static_cast<uint32_t>(time));
    put(out, static_cast<uint32_t>(packet.size()));
    put(out, static_cast<uint32_t>(packet.size()));
    put_padded(out, packet);
    if (comment.empty()) return;
    put_option(out, kComment, comment);
    put(out, uint32_t{kEndOfOptions});
  });
}

}  // namespace uiw::trace
