// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "support/octets.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace uiw::test {
namespace {

uint8_t nibble(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  die("not a hex digit", std::string_view(&c, 1));
}

Octets mpa_frame(std::string_view key, uint8_t flags, uint8_t revision,
                 std::span<const uint8_t> private_data) {
  Octets out = of_text(key);
  out.push_back(flags);
  out.push_back(revision);
  append_be16(out, static_cast<uint16_t>(private_data.size()));
  return concat(std::move(out), private_data);
}

}  // namespace

void die(std::string_view what, std::string_view which) {
  std::fprintf(stderr, "test support: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(which.size()), which.data());
  std::abort();
}

Octets from_hex(std::string_view hex) {
  std::string digits;
  for (char c : hex) {
    if (c != ' ' && c != '\n') digits.push_back(c);
  }
  if (digits.size() % 2 != 0) die("odd number of hex digits", hex);
  Octets out;
  for (size_t i = 0; i < digits.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(nibble(digits[i]) << 4 | nibble(digits[i + 1])));
  }
  return out;
}

std::string to_hex(std::span<const uint8_t> octets) {
  std::string out(2 * octets.size(), ' ');
  char* digit = out.data();
  for (uint8_t octet : octets) {
    *digit++ = "0123456789abcdef"[octet >> 4];
    *digit++ = "0123456789abcdef"[octet & 0xf];
  }
  return out;
}

Octets of_text(std::string_view text) {
  return Octets(text.begin(), text.end());
}

Octets concat(Octets front, std::span<const uint8_t> back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

void append_be16(Octets& out, uint16_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8));
  out.push_back(static_cast<uint8_t>(value));
}

void append_be32(Octets& out, uint32_t value) {
  append_be16(out, static_cast<uint16_t>(value >> 16));
  append_be16(out, static_cast<uint16_t>(value));
}

void append_be64(Octets& out, uint64_t value) {
  append_be32(out, static_cast<uint32_t>(value >> 32));
  append_be32(out, static_cast<uint32_t>(value));
}

uint32_t reference_crc32c(std::span<const uint8_t> octets) {
  uint32_t crc = 0xffffffff;
  for (uint8_t octet : octets) {
    crc ^= octet;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

Octets fpdu(std::span<const uint8_t> ulpdu, bool crc) {
  Octets out;
  append_be16(out, static_cast<uint16_t>(ulpdu.size()));
  out = concat(std::move(out), ulpdu);
  while (out.size() % 4 != 0) out.push_back(0);
  uint32_t value = crc ? reference_crc32c(out) : 0;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(value >> shift));
  return out;
}

Octets tagged(uint8_t opcode, uint32_t stag, uint64_t to, std::span<const uint8_t> payload,
              bool last) {
  Octets out = {static_cast<uint8_t>(last ? 0xc1 : 0x81), static_cast<uint8_t>(0x40 | opcode)};
  append_be32(out, stag);
  append_be64(out, to);
  return concat(std::move(out), payload);
}

Octets untagged(uint8_t opcode, uint32_t qn, uint32_t msn, uint32_t mo,
                std::span<const uint8_t> payload, bool last, uint32_t invalidate_stag) {
  Octets out = {static_cast<uint8_t>(last ? 0x41 : 0x01), static_cast<uint8_t>(0x40 | opcode)};
  append_be32(out, invalidate_stag);
  append_be32(out, qn);
  append_be32(out, msn);
  append_be32(out, mo);
  return concat(std::move(out), payload);
}

Octets read_request(uint32_t sink_stag, uint64_t sink_to, uint32_t size, uint32_t source_stag,
                    uint64_t source_to) {
  Octets out;
  append_be32(out, sink_stag);
  append_be64(out, sink_to);
  append_be32(out, size);
  append_be32(out, source_stag);
  append_be64(out, source_to);
  return out;
}

Octets atomic_request(uint8_t op, uint32_t id, uint32_t stag, uint64_t to, uint64_t add_or_swap,
                      uint64_t add_or_swap_mask, uint64_t compare, uint64_t compare_mask) {
  Octets out;
  append_be32(out, op);
  append_be32(out, id);
  append_be32(out, stag);
  for (uint64_t value : {to, add_or_swap, add_or_swap_mask, compare, compare_mask})
    append_be64(out, value);
  return out;
}

Octets atomic_response(uint32_t id, uint64_t original) {
  Octets out;
  append_be32(out, id);
  append_be64(out, original);
  return out;
}

Octets mpa_request(uint8_t flags, uint8_t revision, std::span<const uint8_t> private_data) {
  return mpa_frame("MPA ID Req Frame", flags, revision, private_data);
}

Octets mpa_reply(uint8_t flags, uint8_t revision, std::span<const uint8_t> private_data) {
  return mpa_frame("MPA ID Rep Frame", flags, revision, private_data);
}

Octets enhanced_block(uint16_t first, uint16_t second) {
  Octets out;
  append_be16(out, first);
  append_be16(out, second);
  return out;
}

}  // namespace uiw::test
