// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "counters/snapshot.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/printable.h"
#include "core/read_file.h"

namespace uiw::counters {
namespace {

constexpr int kTries = 4;  // a process whose queue pairs end all the time is read as it is then

// What is counted of a queue pair, in both forms.
constexpr struct {
  uint64_t Row::*read;
  Count Slot::*published;
} kCounts[] = {
    {&Row::posted_sends, &Slot::posted_sends},
    {&Row::completed_sends, &Slot::completed_sends},
    {&Row::failed_sends, &Slot::failed_sends},
    {&Row::dropped_sends, &Slot::dropped_sends},
    {&Row::posted_receives, &Slot::posted_receives},
    {&Row::completed_receives, &Slot::completed_receives},
    {&Row::failed_receives, &Slot::failed_receives},
    {&Row::bytes_sent, &Slot::bytes_sent},
    {&Row::bytes_received, &Slot::bytes_received},
    {&Row::rnr_waits, &Slot::rnr_waits},
};

template <size_t kSize>
std::string text(const char (&from)[kSize]) {
  return core::printable({from, strnlen(from, kSize)});
}

Row row_of(const Slot& slot, uint32_t index) {
  Row row;
  row.index = index;
  row.kind = slot.kind.load(std::memory_order_relaxed);
  row.number = slot.number;
  row.type = slot.type;
  row.send_cq = slot.send_cq;
  row.recv_cq = slot.recv_cq;
  row.srq = slot.srq;
  row.state = slot.state.load(std::memory_order_relaxed);
  row.device = text(slot.device);
  row.connected = slot.connected.load(std::memory_order_relaxed) != 0;
  const auto address = [](const std::atomic<uint64_t>(&from)[2]) {
    const uint64_t halves[2] = {from[0].load(std::memory_order_relaxed),
                                from[1].load(std::memory_order_relaxed)};
    in6_addr to;
    std::memcpy(&to, halves, sizeof to);
    return to;
  };
  row.local = address(slot.local);
  row.peer = address(slot.peer);
  row.local_port = static_cast<uint16_t>(slot.local_port.load(std::memory_order_relaxed));
  row.peer_port = static_cast<uint16_t>(slot.peer_port.load(std::memory_order_relaxed));
  for (const auto& count : kCounts) row.*count.read = (slot.*count.published).get();
  row.capacity = slot.capacity.get();
  row.high_water = slot.high_water.get();
  return row;
}

// Read by itself: within one system call a processor may read in any order.
std::optional<uint64_t> moves_of(int fd) {
  Header header;
  const std::span bytes(reinterpret_cast<uint8_t*>(&header), sizeof header);
  if (core::read_at(fd, bytes, 0) != sizeof header) return {};
  return header.moves.load(std::memory_order_relaxed);
}

}  // namespace

void add(Row& sum, const Row& row) {
  for (const auto& count : kCounts) sum.*count.read += row.*count.read;
}

void add(Slot& sum, const Slot& slot) {
  for (const auto& count : kCounts)
    (sum.*count.published).add_behind((slot.*count.published).get());
}

std::vector<uint8_t> file_of(std::span<const Row> ended) {
  std::vector<uint8_t> bytes(kSlotSize * (ended.size() + 1));
  const Header header;
  std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof header);
  size_t at = kSlotSize;
  for (const Row& row : ended) {
    Slot slot;
    slot.kind.store(Kind::kEnded, std::memory_order_relaxed);
    row.device.copy(slot.device, kDeviceName - 1);
    for (const auto& count : kCounts) (slot.*count.published).set(row.*count.read);
    std::memcpy(bytes.data() + at, static_cast<const void*>(&slot), sizeof slot);
    at += kSlotSize;
  }
  return bytes;
}

void add_to(std::vector<Row>& by_device, const Snapshot& snapshot) {
  for (const Row& row : snapshot.rows) {
    if (row.kind == Kind::kCompletionQueue) continue;
    auto sum = std::find_if(by_device.begin(), by_device.end(),
                            [&](const Row& other) { return other.device == row.device; });
    if (sum == by_device.end()) {
      sum = by_device.emplace(by_device.end());
      sum->kind = Kind::kEnded;
      sum->device = row.device;
    }
    add(*sum, row);
  }
}

bool parse(std::span<const uint8_t> bytes, Snapshot& out) {
  if (bytes.size() < kSlotSize) return false;
  Header header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  if (header.magic != Header::kMagic) return false;
  out.program = text(header.program);
  out.rows.clear();
  const size_t slots = std::min<size_t>(bytes.size() / kSlotSize - 1, kMostSlots);
  for (uint32_t index = 1; index <= slots; ++index) {
    Slot slot;
    std::memcpy(static_cast<void*>(&slot), bytes.data() + index * kSlotSize, sizeof slot);
    const Kind kind = slot.kind.load(std::memory_order_relaxed);
    if (kind == Kind::kQueuePair || kind == Kind::kCompletionQueue || kind == Kind::kEnded ||
        kind == Kind::kSharedReceiveQueue)
      out.rows.push_back(row_of(slot, index));
  }
  return true;
}

bool read(int fd, Snapshot& out) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const size_t most = kSlotSize * (size_t{kMostSlots} + 1);
  std::vector<uint8_t> bytes(std::min(static_cast<size_t>(status.st_size), most));
  for (int i = 0; i < kTries; ++i) {
    const std::optional<uint64_t> before = moves_of(fd);
    const size_t got = core::read_at(fd, bytes, 0);
    if (!before || !parse(std::span(bytes).first(got), out)) return false;
    if (*before % 2 == 0 && moves_of(fd) == before) break;
  }
  return true;
}

}  // namespace uiw::counters
