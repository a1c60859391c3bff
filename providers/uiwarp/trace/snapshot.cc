// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/printable.h"
#include "core/read_file.h"

namespace uiw::trace {
namespace {

template <size_t kSize>
std::string text(const char (&from)[kSize]) {
  return core::printable({from, strnlen(from, kSize)});
}

std::string read(int fd, Snapshot& out) {
  struct stat status;
  if (fstat(fd, &status) != 0) return strerrordesc_np(errno);
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  std::vector<uint8_t> part(kHeaderSize), again;
  uint64_t ring = 0;
  part.resize(core::read_at(fd, part, 0));
  if (!parse_header(part, out, ring))
    return "it is no trace of `uiwarp run --trace`, or of another version of it";
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
  finish(ring, out);
  return {};
}

}  // namespace

bool parse_header(std::span<const uint8_t> bytes, Snapshot& out, uint64_t& records) {
  Header header;
  if (bytes.size() < kHeaderSize) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != Header::kMagic) return false;
  if (header.records == 0 || header.records > kMostRecords) return false;
  out = {};
  out.pid = header.pid;
  out.program = text(header.program);
  out.boot = text(header.boot);
  out.monotonic = header.monotonic;
  out.realtime = header.realtime;
  records = header.records;
  return true;
}

void take_records(std::span<const uint8_t> bytes, std::span<const uint8_t> again, uint64_t first,
                  uint64_t ring, Snapshot& out) {
  for (uint64_t i = 0; i < bytes.size() / kRecordSize; ++i) {
    Record record;
    std::memcpy(&record, bytes.data() + i * kRecordSize, sizeof record);
    if (std::memcmp(&record, again.data() + i * kRecordSize, sizeof record) != 0) continue;
    if (record.sequence == 0 || (record.sequence - 1) % ring != first + i) continue;
    if (record.kind == Kind::kNone || static_cast<uint8_t>(record.kind) > kLastKind) continue;
    out.records.push_back(record);
  }
}

void finish(uint64_t ring, Snapshot& out) {
  uint64_t last = 0;
  for (const Record& record : out.records) last = std::max(last, record.sequence);
  const uint64_t gone = last > ring ? last - ring : 0;
  std::erase_if(out.records, [&](const Record& record) { return record.sequence <= gone; });
  out.lost = gone;
  std::sort(out.records.begin(), out.records.end(), [](const Record& a, const Record& b) {
    return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
  });
}

std::string read(const std::string& path, Snapshot& out) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return strerrordesc_np(errno);
  std::string problem = read(fd, out);
  close(fd);
  return problem;
}

}  // namespace uiw::trace
