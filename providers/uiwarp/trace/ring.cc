// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "trace/ring.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <iterator>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/clock.h"
#include "core/file_limit.h"
#include "core/log.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
#include "core/read_file.h"
#include "core/trace_options.h"
#include "trace/place.h"

namespace uiw::trace {
namespace {

class Ring {
 public:
  int open();
  void write(const Record& record);

 private:
  int map(int fd, const Header& header);
  void keep(const Record& record, uint64_t sequence);

  // What a place behind the ring holds.
  struct Kept {
    uint32_t qp = 0;       // 0: nothing
    bool is_over = false;  // the queue pair was destroyed
    uint64_t sequence = 0;
  };

  std::mutex mutex_;
  std::atomic<Record*> records_{nullptr};
  uint64_t count_ = 0;      // of records; known before records_
  std::vector<Kept> kept_;  // under mutex_, when records_ is known
  alignas(64) std::atomic<uint64_t> written_{0};
};

constinit core::PerProcess<Ring> g_ring;
// Written before anything is recorded. Never destroyed: a program's destructors may come after
// ours.
std::string* g_path = nullptr;
uint64_t g_size = 0;

std::string path_of_process() {
  std::string path = *g_path;
  const std::string pid = std::to_string(getpid());
  for (size_t at = 0; (at = path.find("%p", at)) != std::string::npos; at += pid.size())
    path.replace(at, 2, pid);
  return path;
}

// The folder of traces, while a place in it is taken: of two processes that begin at once one sees
// what the other has made. Whoever cannot lock it soon goes on without.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
    fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    constexpr timespec kPause{0, 2'000'000};
    for (int i = 0; fd_ >= 0 && i < 50 && flock(fd_, LOCK_EX | LOCK_NB) != 0; ++i)
      nanosleep(&kPause, nullptr);
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;

 private:
  int fd_;
};

Header header_of(uint64_t size) {
  Header header{};
  // One of 64 is for connections, whatever else there is.
  constexpr uint64_t kShare = 64;
  const uint64_t records = (size - kHeaderSize) / kRecordSize;
  header.kept = std::min(records / kShare, kMostKept);
  header.records = records - header.kept;
  timespec real{};
  clock_gettime(CLOCK_REALTIME, &real);
  header.monotonic = core::now();
  header.realtime = real.tv_sec * core::kSecond + real.tv_nsec;
  header.pid = static_cast<uint32_t>(getpid());
  header.started = started_at(getpid());
  strncpy(header.program, program_invocation_short_name, sizeof header.program - 1);
  std::string boot;
  core::read_file("/proc/sys/kernel/random/boot_id", boot);
  boot.copy(header.boot, std::min(boot.find('\n'), sizeof header.boot - 1));
  header.magic = Header::kMagic;
  return header;
}

size_t size_of(const Header& header) {
  return kHeaderSize + (header.records + header.kept) * kRecordSize;
}

// A new file, with a header that says whose it is: what another process has mapped is never made
// shorter under it. `path` becomes another one when that is in use. A descriptor, or -errno:
// EEXIST, what is there is no trace.
int create(std::string& path, const Header& header) {
  constexpr int kMostExecs = 100;
  if (!core::may_write_up_to(size_of(header))) return -EFBIG;
  const FolderLock lock(path);
  Place place;
  for (int i = 0; (place = look_at(path)) == Place::kInUse && i < kMostExecs; ++i)
    path += "." + std::to_string(getpid());
  if (place != Place::kFree) return -EEXIST;
  if (path != path_of_process())
    core::log(
        core::LogLevel::kWarn,
        "trace: a process that runs writes %s: this one writes %s. %%p in the name stands for "
        "the process id",
        path_of_process().c_str(), path.c_str());
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return -errno;
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return -errno;
  fd = core::sys::above_standard(fd);
  if (fd < 0) return fd;
  if (pwrite(fd, &header, sizeof header, 0) == sizeof header) return fd;
  const int error = errno;
  close(fd);
  unlink(path.c_str());
  return -error;
}

// Memory is there before it is touched: where there is none a store would be a SIGBUS.
int Ring::map(int fd, const Header& header) {
  const size_t size = size_of(header);
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(size))) return error;
  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return errno;
  madvise(mapped, size, MADV_DONTDUMP);
  madvise(mapped, size, MADV_DONTFORK);
  count_ = header.records;
  kept_.resize(header.kept);
  records_.store(reinterpret_cast<Record*>(static_cast<uint8_t*>(mapped) + kHeaderSize),
                 std::memory_order_release);
  return 0;
}

int Ring::open() {
  const std::lock_guard lock(mutex_);
  if (records_.load(std::memory_order_relaxed)) return 0;
  std::string path = path_of_process();
  const Header header = header_of(g_size);
  const int fd = create(path, header);
  int error = fd < 0 ? -fd : map(fd, header);
  if (fd >= 0) close(fd);
  if (error && fd >= 0) unlink(path.c_str());
  if (error)
    core::log(core::LogLevel::kError,
              "UIWARP_TRACE: %s cannot be made: %s. Name a file in a folder with room, or ask for "
              "less by size=; until then no device can be opened",
              path.c_str(),
              error == EEXIST ? "what is there is no trace, and stays" : strerrordesc_np(error));
  return error;
}

void put(Record* to, const Record& record, uint64_t number) {
  auto* const place = reinterpret_cast<uint64_t*>(to);
  uint64_t words[kRecordSize / sizeof(uint64_t)];
  std::memcpy(words, &record, sizeof words);
  static_assert(offsetof(Record, sequence) == 0);
  const std::atomic_ref<uint64_t> sequence(place[0]);
  // A process that is killed in between leaves neither the old nor half a new one.
  sequence.store(0, std::memory_order_relaxed);
  // Atomic: who was not scheduled for a whole round writes to the same place. Released: behind that
  // of the sequence.
  for (size_t i = 1; i < std::size(words); ++i)
    std::atomic_ref<uint64_t>(place[i]).store(words[i], std::memory_order_release);
  sequence.store(number, std::memory_order_release);
}

void Ring::write(const Record& record) {
  Record* const records = records_.load(std::memory_order_acquire);
  if (!records) return;
  const uint64_t index = written_.fetch_add(1, std::memory_order_relaxed);
  put(records + index % count_, record, index + 1);
  switch (record.kind) {
    case Kind::kCreated:
    case Kind::kConnected:
    case Kind::kDestroyed:
      return keep(record, index + 1);
    default:
      return;
  }
}

// Of queue pairs that were destroyed the oldest go first. A number that is another queue pair's now
// is no more that of the one before.
void Ring::keep(const Record& record, uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  auto place = std::ranges::find(kept_, record.qp, &Kept::qp);
  if (record.kind == Kind::kDestroyed) {
    if (place != kept_.end()) place->is_over = true;
    return;
  }
  const bool connected = record.kind == Kind::kConnected;
  if (place == kept_.end() && connected)
    place = std::ranges::min_element(kept_, {}, [](const Kept& each) {
      return std::tuple(each.qp != 0, !each.is_over, each.sequence);
    });
  if (place == kept_.end() || record.qp == 0) return;
  *place = connected ? Kept{.qp = record.qp, .sequence = sequence} : Kept{};
  put(records_.load(std::memory_order_relaxed) + count_ + (place - kept_.begin()), record,
      connected ? sequence : 0);
}

}  // namespace

bool configure(const char* options) {
  core::TraceOptions parsed;
  if (!core::parse_trace_options(options, parsed) || parsed.file.empty()) return false;
  if (!g_path) g_path = new std::string;
  *g_path = parsed.file;
  g_size = parsed.size;
  return true;
}

int open_ring() {
  Ring* const ring = g_ring.get();
  return ring ? ring->open() : ENOMEM;
}

void write(const Record& record) {
  if (Ring* const ring = g_ring.get()) ring->write(record);
}

Record record_of(Kind kind, uint32_t qp, int64_t time) {
  Record record{};
  record.kind = kind;
  record.qp = qp;
  record.time = time;
  return record;
}

}  // namespace uiw::trace
