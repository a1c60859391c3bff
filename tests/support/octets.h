// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Hand-made frames, for what the wire vectors (support/vectors.h) do not cover. Deliberately shares
// no code with the product: what it builds is the reference to compare with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uiw::test {

using Octets = std::vector<uint8_t>;

// Ends the test program, saying why.
[[noreturn]] void die(std::string_view what, std::string_view which);

Octets from_hex(std::string_view hex);  // blanks are skipped
std::string to_hex(std::span<const uint8_t> octets);
Octets of_text(std::string_view text);
Octets concat(Octets front, std::span<const uint8_t> back);
void append_be16(Octets& out, uint16_t value);
void append_be32(Octets& out, uint32_t value);
void append_be64(Octets& out, uint64_t value);

// CRC32C one bit at a time: RFC 3385's polynomial, the value as an integer.
uint32_t reference_crc32c(std::span<const uint8_t> octets);

// A whole FPDU without markers: length, ULPDU, zero pad, CRC (or four zero octets).
Octets fpdu(std::span<const uint8_t> ulpdu, bool crc = true);

// ULPDUs. `opcode` is RDMAP's; versions are 1.
Octets tagged(uint8_t opcode, uint32_t stag, uint64_t to, std::span<const uint8_t> payload,
              bool last = true);
Octets untagged(uint8_t opcode, uint32_t qn, uint32_t msn, uint32_t mo,
                std::span<const uint8_t> payload, bool last = true, uint32_t invalidate_stag = 0);
// The 28 octets behind a Read Request's DDP header.
Octets read_request(uint32_t sink_stag, uint64_t sink_to, uint32_t size, uint32_t source_stag,
                    uint64_t source_to);
// The 52 octets behind an Atomic Request's DDP header; `op` 0 FetchAdd, 2 CmpSwap.
Octets atomic_request(uint8_t op, uint32_t id, uint32_t stag, uint64_t to, uint64_t add_or_swap,
                      uint64_t add_or_swap_mask, uint64_t compare = 0,
                      uint64_t compare_mask = ~0ull);
// The 12 octets behind an Atomic Response's.
Octets atomic_response(uint32_t id, uint64_t original);

// MPA start-up frames. `flags` is octet 16: M 0x80, C 0x40, R 0x20, S 0x10.
Octets mpa_request(uint8_t flags, uint8_t revision, std::span<const uint8_t> private_data);
Octets mpa_reply(uint8_t flags, uint8_t revision, std::span<const uint8_t> private_data);
// The four octets of RFC 6581 section 9: `first` A 0x8000, B 0x4000 and IRD; `second` C, D and ORD.
Octets enhanced_block(uint16_t first, uint16_t second);

}  // namespace uiw::test
