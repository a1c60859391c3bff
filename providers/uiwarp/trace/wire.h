// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What traces of one or both ends tell of connections: MPA start-up frames, and each FPDU once.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/snapshot.h"

namespace uiw::trace {

struct Connection {
  Addresses addresses;  // local: the initiator's
  Agreed agreed;
  int64_t began, replied;  // CLOCK_REALTIME, nanoseconds, as the initiator saw it if it was traced
  std::string ends;        // who was traced, for people
};

struct WireFpdu {
  int64_t time;  // CLOCK_REALTIME, nanoseconds: when it was sent; received, if only that is known
  const Record* record;
  const Record* rest;   // kFpduRest; null: there is none
  uint32_t connection;  // of Wire::connections
  bool by_initiator;

  // Octets of its direction before it, from the first FPDU on.
  uint64_t position() const {
    return uint64_t{record->fpdu.position_high} << 32 | record->fpdu.position_low;
  }
  // Copies what is known of the ULPDU to `to`; how many bytes: not more than the ULPDU has.
  static constexpr uint32_t kMaxHead = sizeof Fpdu::head + sizeof Record::rest;
  uint32_t head(uint8_t (&to)[kMaxHead]) const;
};

// As the other end sees them.
Addresses turned(const Addresses& from);

struct Wire {
  std::vector<Connection> connections;
  std::vector<WireFpdu> fpdus;  // in the order of time
  uint64_t unplaced = 0;        // FPDUs of connections that no record tells of
};

// `snapshots` must stay as long as what is returned.
Wire wire_of(std::span<const Snapshot> snapshots);

}  // namespace uiw::trace
