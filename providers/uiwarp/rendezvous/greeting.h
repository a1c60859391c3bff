// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What two queue pairs that meet say in the private data of MPA start-up: who speaks to whom.
// Layout, all big-endian: "UIWM", version 1 and three zero octets, then number (4 octets) and GID
// (16) of the sender, the same of the queue pair it means.
#pragma once

#include <optional>

#include "core/bytes.h"
#include "rendezvous/name.h"

namespace uiw::rendezvous {

struct Greeting {
  Name from, to;
  bool operator==(const Greeting&) const = default;
};

inline constexpr uint32_t kGreetingSize = 48;

// Writes kGreetingSize octets.
void encode(uint8_t* out, const Greeting& greeting);
// Nothing when the octets are not a greeting: another size, key or version, a number beyond 24
// bits.
std::optional<Greeting> decode_greeting(core::Bytes octets);

}  // namespace uiw::rendezvous
