// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The wire vectors of tests/vectors/vectors.json. For use from one thread (the first call loads the
// file).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/octets.h"

namespace uiw::test {

// Octets that Wireshark dissected as `fields` say.
struct Vector {
  std::string id;
  std::string description;
  Octets octets;
  std::map<std::string, uint64_t, std::less<>> fields;

  bool has(std::string_view name) const { return fields.find(name) != fields.end(); }
  uint64_t field(std::string_view name) const;  // ends the test program when there is none
};

// Octets to send as the first FPDUs of a connection with CRC.
struct Negative {
  std::string id;
  std::string description;
  std::string expect;        // Terminate code as four hex digits, "none" (accepted) or "close"
  std::string precondition;  // "" or what the receiver must be set up like
  Octets octets;
};

// What an atomic operation makes of `original` (RFC 7306 section 5.1). Masks as on the wire.
struct AtomicValue {
  bool fetch_add = false;
  uint64_t original = 0, add_or_swap = 0, add_or_swap_mask = 0;
  uint64_t compare = 0, compare_mask = 0;
  uint64_t result = 0;
};

const std::vector<Vector>& vectors();
const std::vector<Negative>& negatives();
const std::vector<AtomicValue>& atomic_values();
// By id ("V03-send5-crc", "N17"); an unknown id ends the test program.
const Vector& vector(std::string_view id);
const Negative& negative(std::string_view id);

}  // namespace uiw::test
