// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Reading what a process has published: bytes of its file, whoever wrote them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "counters/slot.h"

namespace uiw::counters {

struct Row {
  uint32_t index = 0;  // from 1, as of Slot::send_cq
  Kind kind = Kind::kFree;
  uint32_t number = 0, type = 0, send_cq = 0, recv_cq = 0, srq = 0, state = 0;
  std::string device;
  bool connected = false;
  in6_addr local{}, peer{};
  uint16_t local_port = 0, peer_port = 0;
  uint64_t posted_sends = 0, completed_sends = 0, failed_sends = 0, dropped_sends = 0;
  uint64_t posted_receives = 0, completed_receives = 0, failed_receives = 0;
  uint64_t bytes_sent = 0, bytes_received = 0, rnr_waits = 0;
  uint64_t capacity = 0, high_water = 0;

  // A completion is read later than the post, which may not show yet.
  uint64_t sends_in_flight() const {
    const uint64_t ended = completed_sends + dropped_sends;
    return posted_sends > ended ? posted_sends - ended : 0;
  }
};

// Adds what is counted, high-water marks excepted.
void add(Row& sum, const Row& row);

struct Snapshot {
  std::string program;
  std::vector<Row> rows;  // none of kFree
};

// False: not a file of this version. Whatever is in `bytes`, nothing outside is read.
bool parse(std::span<const uint8_t> bytes, Snapshot& out);

// The same of an open file, which its process may be changing: read, not mapped, so that a file
// that gets shorter is no SIGBUS. Not more than kMostSlots. False also when it cannot be read.
bool read(int fd, Snapshot& out);

// A file in which rows of kEnded are.
std::vector<uint8_t> file_of(std::span<const Row> ended);

// Adds each queue pair and shared receive queue, living or ended, to the row of its device.
void add_to(std::vector<Row>& by_device, const Snapshot& snapshot);

}  // namespace uiw::counters
