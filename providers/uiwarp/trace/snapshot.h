// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A trace file as it was read. Nothing in it is trusted: numbers are what they are, text is
// printable ASCII. Pure but for read().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/record.h"

namespace uiw::trace {

struct Snapshot {
  uint32_t pid = 0;
  std::string program, boot;
  int64_t monotonic = 0, realtime = 0;
  uint64_t lost = 0;            // older records, for which there was no room
  uint64_t last = 0;            // the sequence of the newest one
  std::vector<Record> records;  // in the order of their times
  std::vector<Record> kept;     // until finish(): of connections, from behind the ring

  // Of the same file, or a copy of it: a process begins one trace at a time.
  bool is_same(const Snapshot& other) const {
    return pid == other.pid && monotonic == other.monotonic && realtime == other.realtime &&
           boot == other.boot && program == other.program;
  }
};

// Of how many records a file has room for.
struct Room {
  uint64_t ring = 0;  // of the ring
  uint64_t kept = 0;  // behind it
};

// False: it does not begin as a trace does, or its ring is none.
bool parse_header(std::span<const uint8_t> bytes, Snapshot& out, Room& room);
// Takes those that are whole from a part of the ring, `first` being the place of its first record.
// `again`: as many bytes from the same place, read later: of a process that runs, a record that is
// another one by now may be half of each.
void take_records(std::span<const uint8_t> bytes, std::span<const uint8_t> again, uint64_t first,
                  uint64_t ring, Snapshot& out);
// The same of what is behind the ring, all of it.
void take_kept(std::span<const uint8_t> bytes, std::span<const uint8_t> again, Snapshot& out);
// When all parts have been taken: puts them into order, and leaves out what is of an earlier round.
// Connections whose own record is lost are told first (kStands), if there is anything of them.
void finish(uint64_t ring, Snapshot& out);

// Empty, or why it cannot be read. At most 1 GiB of records is taken.
std::string read(const std::string& path, Snapshot& out);

}  // namespace uiw::trace
