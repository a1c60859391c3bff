// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "core/printable.h"
#include "core/read_file.h"

namespace uiw::trace {
namespace {

template <size_t kSize>
std::string text(const char (&from)[kSize]) {
  return core::printable({from, strnlen(from, kSize)});
}

// Nothing: it is being written, or is none.
std::optional<Record> whole_record(std::span<const uint8_t> bytes, std::span<const uint8_t> again,
                                   uint64_t place) {
  Record record;
  std::memcpy(&record, bytes.data() + place * kRecordSize, sizeof record);
  if (std::memcmp(&record, again.data() + place * kRecordSize, sizeof record) != 0) return {};
  if (record.sequence == 0 || record.kind == Kind::kNone) return {};
  if (static_cast<uint8_t>(record.kind) > kLastKind) return {};
  return record;
}

// Connections whose own record is one of the first `gone`, as if they were told with the first
// record that is there.
void tell_kept(uint64_t gone, Snapshot& out) {
  std::vector<Record> told;
  told.swap(out.kept);
  if (out.records.empty()) return;
  std::unordered_set<uint32_t> numbers;
  for (const Record& record : out.records) numbers.insert(record.qp);
  std::erase_if(told, [&](const Record& record) {
    return record.sequence > gone || !numbers.contains(record.qp);
  });
  std::ranges::sort(told, {}, &Record::sequence);
  for (Record& record : told) {
    record.kind = Kind::kStands;
    record.time = out.records.front().time;
  }
  out.records.insert(out.records.begin(), told.begin(), told.end());
}

std::string read(int fd, Snapshot& out) {
  struct stat status;
  if (fstat(fd, &status) != 0) return strerrordesc_np(errno);
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  std::vector<uint8_t> part(kHeaderSize), again;
  Room room;
  part.resize(core::read_at(fd, part, 0));
  if (!parse_header(part, out, room))
    return "it is no trace of `uiwarp run --trace`, or of another version of it";
  const uint64_t ring = room.ring;
  constexpr uint64_t kPart = 4096;  // records at a time
  part.resize(kPart * kRecordSize);
  for (uint64_t first = 0; first < ring; first += kPart) {
    const size_t wanted = std::min(kPart, ring - first) * kRecordSize;
    const uint64_t offset = kHeaderSize + first * kRecordSize;
    const size_t got = core::read_at(fd, std::span(part).first(wanted), offset);
    again.resize(got);
    again.resize(core::read_at(fd, again, offset));
    take_records(std::span(part).first(again.size()), again, first, ring, out);
    if (got < wanted) break;  // it was cut off
  }
  const uint64_t behind = kHeaderSize + ring * kRecordSize;
  part.resize(room.kept * kRecordSize);
  part.resize(core::read_at(fd, part, behind));
  again.resize(part.size());
  again.resize(core::read_at(fd, again, behind));
  take_kept(std::span(part).first(again.size()), again, out);
  finish(ring, out);
  return {};
}

}  // namespace

bool parse_header(std::span<const uint8_t> bytes, Snapshot& out, Room& room) {
  Header header;
  if (bytes.size() < kHeaderSize) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != Header::kMagic) return false;
  if (header.records == 0 || header.records > kMostRecords) return false;
  if (header.kept > kMostKept) return false;
  out = {};
  out.pid = header.pid;
  out.program = text(header.program);
  out.boot = text(header.boot);
  out.monotonic = header.monotonic;
  out.realtime = header.realtime;
  room = {.ring = header.records, .kept = header.kept};
  return true;
}

void take_records(std::span<const uint8_t> bytes, std::span<const uint8_t> again, uint64_t first,
                  uint64_t ring, Snapshot& out) {
  for (uint64_t i = 0; i < bytes.size() / kRecordSize; ++i) {
    const std::optional<Record> record = whole_record(bytes, again, i);
    if (record && (record->sequence - 1) % ring == first + i) out.records.push_back(*record);
  }
}

void take_kept(std::span<const uint8_t> bytes, std::span<const uint8_t> again, Snapshot& out) {
  for (uint64_t i = 0; i < bytes.size() / kRecordSize; ++i) {
    const std::optional<Record> record = whole_record(bytes, again, i);
    if (record && record->kind == Kind::kConnected) out.kept.push_back(*record);
  }
}

void finish(uint64_t ring, Snapshot& out) {
  uint64_t last = 0;
  for (const Record& record : out.records) last = std::max(last, record.sequence);
  const uint64_t gone = last > ring ? last - ring : 0;
  std::erase_if(out.records, [&](const Record& record) { return record.sequence <= gone; });
  out.lost = gone;
  out.last = last;
  std::sort(out.records.begin(), out.records.end(), [](const Record& a, const Record& b) {
    return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
  });
  tell_kept(gone, out);
}

std::string read(const std::string& path, Snapshot& out) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return strerrordesc_np(errno);
  std::string problem = read(fd, out);
  close(fd);
  return problem;
}

}  // namespace uiw::trace
