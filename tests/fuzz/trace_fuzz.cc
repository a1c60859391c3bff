// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Files that `uiwarp trace` is given: whatever they say, what comes out is bounded, printable, and
// a capture has whole blocks.
//
// Input: one octet of options, the file's header without its padding, and records. As others would
// be left out at once, with an option the header is made right and records get their sequence; with
// another one the ring has gone round, and all connections are behind it, too.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "trace/capture.h"
#include "trace/history.h"

namespace {

using namespace uiw::trace;

constexpr uint8_t kMend = 1, kTwice = 2, kAround = 4;

void check_text(const std::string& text) {
  CHECK(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
}

void check_history(const History& history) {
  for (const Snapshot& process : history.processes) check_text(process.program + process.boot);
  for (size_t i = 0; i < history.queue_pairs.size(); ++i)
    check_text(number_of(history, i) + local_of(history.queue_pairs[i]) +
               peer_of(history.queue_pairs[i]));
  for (const Request& request : history.requests) {
    check_text(opcode_of(request) + status_of(request) + number_of(history, request.queue_pair));
    CHECK(request.process < history.processes.size());
  }
  for (const Event& event : history.events) check_text(text_of(event));
  for (const Percentiles& row : percentiles(history)) CHECK(row.count > 0);
}

// The octets of what write_capture() writes.
std::vector<uint8_t> captured(const Wire& wire, uint64_t left_out) {
  char* octets = nullptr;
  size_t size = 0;
  std::FILE* const out = open_memstream(&octets, &size);
  CHECK(out && write_capture(wire, left_out, out));
  std::fclose(out);
  const std::vector<uint8_t> copy(octets, octets + size);
  std::free(octets);
  return copy;
}

void check_capture(std::span<const Snapshot> snapshots) {
  constexpr uint64_t kMost = 200'000;
  const Wire wire = wire_of(snapshots);
  const uint64_t left_out = surplus_of(wire, kMost);
  CHECK(left_out <= wire.fpdus.size());
  const std::vector<uint8_t> capture = captured(wire, left_out);
  CHECK(capture.size() <= kMost + 1000 + 2000 * wire.connections.size());
  uint64_t packets = 0;
  for (size_t at = 0; at < capture.size();) {
    uint32_t type, size, again;
    CHECK(capture.size() - at >= 12);
    std::memcpy(&type, &capture[at], sizeof type);
    std::memcpy(&size, &capture[at + 4], sizeof size);
    CHECK(size >= 12 && size % 4 == 0 && size <= capture.size() - at);
    std::memcpy(&again, &capture[at + size - 4], sizeof again);
    CHECK(size == again);
    packets += type == 6 ? 1 : 0;
    at += size;
  }
  CHECK(packets >= 5 * wire.connections.size() + wire.fpdus.size() - left_out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t options = *data++;
  --size;
  std::vector<uint8_t> file(kHeaderSize);
  const size_t header_size = std::min(size, sizeof(Header));
  if (header_size > 0) std::memcpy(file.data(), data, header_size);
  const std::span records(data + header_size, size - header_size);
  const uint64_t count = records.size() / kRecordSize;
  if (options & kMend) {
    const uint64_t magic = Header::kMagic, ring = count + 1, kept = 0;
    std::memcpy(file.data() + offsetof(Header, magic), &magic, sizeof magic);
    std::memcpy(file.data() + offsetof(Header, records), &ring, sizeof ring);
    std::memcpy(file.data() + offsetof(Header, kept), &kept, sizeof kept);
  }
  file.insert(file.end(), records.begin(), records.end());
  const auto number = [&](uint64_t first) {
    for (uint64_t i = 0; options & kMend && i < count; ++i) {
      const uint64_t sequence = first + i;
      std::memcpy(file.data() + kHeaderSize + i * kRecordSize, &sequence, sizeof sequence);
    }
  };
  Snapshot snapshot;
  Room room;
  if (!parse_header(file, snapshot, room)) return 0;
  const auto taken = std::span(file).subspan(kHeaderSize);
  number(1);
  if (options & kAround) {
    take_kept(taken, taken, snapshot);
    number(room.ring + 1);
  }
  take_records(taken, taken, 0, room.ring, snapshot);
  finish(room.ring, snapshot);
  const std::vector<Snapshot> all(options & kTwice ? 2 : 1, snapshot);
  check_capture(all);
  check_history(build(all));
  return 0;
}
