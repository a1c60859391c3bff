// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Two ways to ask the kernel about a range: a query per mapping (Linux 6.11), or the text of
// /proc/thread-self/maps. Both look at one mapping after the other from the first byte on.
#include "mem/mapping.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "core/raw_sys.h"

namespace uiw::mem {
namespace {

namespace sys = core::sys;

// The argument of the ioctl PROCMAP_QUERY of /proc/PID/maps, which kernel headers before 6.11 lack.
struct MappingQuery {
  uint64_t size;         // in: bytes of this structure
  uint64_t flags;        // in: which mappings are wanted; 0 = the one that covers `address`
  uint64_t address;      // in
  uint64_t start, end;   // out: the mapping
  uint64_t permissions;  // out
  uint64_t page_size, offset, inode;
  uint32_t device_major, device_minor;
  uint32_t name_size, build_id_size;  // in: 0, not wanted
  uint64_t name_address, build_id_address;
};
static_assert(sizeof(MappingQuery) == 104);
constexpr unsigned long kQueryRequest = _IOWR('f', 17, MappingQuery);
constexpr uint64_t kReadable = 1, kWritable = 2;

struct Wanted {
  uint64_t next;  // first byte not yet seen to be mapped
  uint64_t end;
  bool writable;
};

// 0: covered; EFAULT: not; ENOTTY: this kernel has no such query.
int check_by_query(int maps, Wanted wanted) {
  const uint64_t needed = kReadable | (wanted.writable ? kWritable : 0);
  while (wanted.next < wanted.end) {
    MappingQuery query;
    std::memset(&query, 0, sizeof query);
    query.size = sizeof query;
    query.address = wanted.next;
    if (const int result = sys::ioctl(maps, kQueryRequest, &query); result < 0)
      return result == -ENOENT ? EFAULT : ENOTTY;
    if ((query.permissions & needed) != needed) return EFAULT;
    wanted.next = query.end;
  }
  return 0;
}

// Parses the lines "START-END rw.. ..." byte by byte; skips what follows the permissions.
class MapsParser {
 public:
  explicit MapsParser(Wanted wanted) : wanted_(wanted) {}

  enum class Answer { kMore, kCovered, kNot };

  Answer feed(char c) {
    if (c == '\n') {
      const Answer answer = end_of_line();
      field_ = Field::kStart;
      start_ = end_ = 0;
      permissions_ = 0;
      return answer;
    }
    switch (field_) {
      case Field::kStart:
        if (c == '-')
          field_ = Field::kEnd;
        else
          start_ = start_ << 4 | digit(c);
        break;
      case Field::kEnd:
        if (c == ' ')
          field_ = Field::kPermissions;
        else
          end_ = end_ << 4 | digit(c);
        break;
      case Field::kPermissions:
        if (c == 'r') permissions_ |= kReadable;
        if (c == 'w') permissions_ |= kWritable;
        if (c == ' ') field_ = Field::kRest;
        break;
      case Field::kRest:
        break;
    }
    return Answer::kMore;
  }

 private:
  enum class Field { kStart, kEnd, kPermissions, kRest };

  static uint64_t digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

  Answer end_of_line() {  // the lines are in ascending order
    if (end_ <= wanted_.next) return Answer::kMore;
    const uint64_t needed = kReadable | (wanted_.writable ? kWritable : 0);
    if (start_ > wanted_.next || (permissions_ & needed) != needed) return Answer::kNot;
    wanted_.next = end_;
    return wanted_.next >= wanted_.end ? Answer::kCovered : Answer::kMore;
  }

  Wanted wanted_;
  Field field_ = Field::kStart;
  uint64_t start_ = 0, end_ = 0, permissions_ = 0;
};

int check_by_text(int maps, const Wanted& wanted) {
  MapsParser parser(wanted);
  char buffer[4096];
  for (;;) {
    const long got = sys::read(maps, buffer, sizeof buffer);
    if (got == -EINTR) continue;
    if (got < 0) return 0;        // cannot be known
    if (got == 0) return EFAULT;  // no further mapping could cover the rest
    for (long i = 0; i < got; ++i) {
      switch (parser.feed(buffer[i])) {
        case MapsParser::Answer::kCovered:
          return 0;
        case MapsParser::Answer::kNot:
          return EFAULT;
        case MapsParser::Answer::kMore:
          break;
      }
    }
  }
}

}  // namespace

int check_mapped(const void* address, uint64_t length, bool writable) {
  if (length == 0) return 0;
  const uint64_t start = reinterpret_cast<uintptr_t>(address);
  if (start + length < start) return EFAULT;
  const int maps = sys::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return 0;
  const Wanted wanted{start, start + length, writable};
  int result = check_by_query(maps, wanted);
  // Linux 6.18 answers without the lock of the address space while other threads may change
  // neighbouring mappings. So a negative answer is checked again.
  if (result != 0) result = check_by_text(maps, wanted);
  sys::close(maps);
  return result;
}

int check_mapped_by_text(const void* address, uint64_t length, bool writable) {
  const uint64_t start = reinterpret_cast<uintptr_t>(address);
  const int maps = sys::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return 0;
  const int result = check_by_text(maps, {start, start + length, writable});
  sys::close(maps);
  return result;
}

}  // namespace uiw::mem
