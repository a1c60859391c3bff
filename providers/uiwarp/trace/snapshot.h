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
  std::vector<Record> records;  // in the order of their times
};

// False: it does not begin as a trace does, or its ring is none.
bool parse_header(std::span<const uint8_t> bytes, Snapshot& out, uint64_t& records);
// Takes those that are whole from a part of the ring, `first` being the place of its first record.
// `again`: as many bytes from the same place, read later: of a process that runs, a record that is
// another one by now may be half of each.
void take_records(std::span<const uint8_t> bytes, std::span<const uint8_t> again, uint64_t first,
                  uint64_t ring, Snapshot& out);
// When all parts have been taken: puts them into order, and leaves out what is of an earlier round.
void finish(uint64_t ring, Snapshot& out);

// Empty, or why it cannot be read. At most 1 GiB of records is taken.
std::string read(const std::string& path, Snapshot& out);

}  // namespace uiw::trace
