// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/counter_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/file_limit.h"
#include "core/no_cancellation.h"
#include "core/per_process.h"
#include "core/raw_sys.h"
#include "counters/file.h"
#include "vkernel/folder.h"
#include "vkernel/raw_files.h"
#include "vkernel/tree.h"

namespace uiw::vkernel {
namespace {

namespace sys = core::sys;

constexpr char kSums[] = "sums";
constexpr unsigned kMode = 0600;
// Files of ended processes that are added at a time; the next process goes on.
constexpr int kMostAdded = 64;
// Whoever holds the sums is done in a millisecond, unless it was stopped.
constexpr int kTries = 100;
constexpr long kBetweenTries = 1'000'000;  // ns

class Descriptor {
 public:
  explicit Descriptor(core::Result<int> opened) : fd_(opened ? *opened : -opened.error()) {}
  ~Descriptor() {
    if (fd_ >= 0) sys::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Empty when there is no tree.
std::string counters_path() {
  const std::string_view root = tree_root();
  if (root.empty()) return {};
  return std::string(root.substr(0, root.rfind('/') + 1)).append(kCountersFolder);
}

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

int hold(int fd, short type) {
  struct flock lock = whole_file(type);
  return sys::fcntl(fd, F_SETLK, reinterpret_cast<long>(&lock));
}

// Another process holds it.
bool is_held(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  return sys::fcntl(fd, F_GETLK, reinterpret_cast<long>(&lock)) != 0 || lock.l_type != F_UNLCK;
}

bool is_data(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

constinit core::PerProcess<std::mutex> g_sums;

// The file of sums, open. A record lock holds it, which the child of a fork does not get. It ends
// when any descriptor of the file is closed, so one thread of a process has it open at a time.
class Sums {
 public:
  // -1: not open.
  Sums(const Folder& folder, int flags) : alone_(lock()), file_(open(folder, flags)) {}
  int get() const { return file_.get(); }
  bool try_hold() { return hold(get(), F_WRLCK) == 0; }
  // Against who would change it, unless that takes too long.
  void share() {
    for (int i = 0; i < kTries && hold(get(), F_RDLCK) != 0; ++i) raw::sleep(kBetweenTries);
  }

 private:
  static std::unique_lock<std::mutex> lock() {
    std::mutex* const mutex = g_sums.get();
    return mutex ? std::unique_lock(*mutex) : std::unique_lock<std::mutex>();
  }
  core::Result<int> open(const Folder& folder, int flags) const {
    if (!alone_) return core::Errno{ENOMEM};
    return folder.open_file(kSums, flags, kMode);
  }

  std::unique_lock<std::mutex> alone_;
  Descriptor file_;  // closed before the other is given back
};

// What nobody holds goes into the sums.
void add_ended(const Folder& folder) {
  Sums sums(folder, O_RDWR | O_CREAT);
  if (sums.get() < 0 || !sums.try_hold()) return;
  std::vector<counters::Row> rows;
  counters::Snapshot snapshot;
  if (counters::read(sums.get(), snapshot)) counters::add_to(rows, snapshot);
  std::vector<std::string> added;
  for (const std::string& name : folder.names()) {
    if (!is_data(name)) continue;
    const Descriptor file(folder.open_file(name, O_RDONLY | O_NONBLOCK));
    if (file.get() < 0 || is_held(file.get())) continue;
    if (counters::read(file.get(), snapshot)) counters::add_to(rows, snapshot);
    added.push_back(name);
    if (added.size() == kMostAdded) break;
  }
  if (added.empty()) return;
  const std::vector<uint8_t> bytes = counters::file_of(rows);
  if (!core::may_write_up_to(bytes.size())) return;
  if (sys::pwrite(sums.get(), bytes.data(), bytes.size(), 0) != static_cast<long>(bytes.size()))
    return;
  for (const std::string& name : added) folder.remove(name);
}

core::Result<Folder> open_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  core::Result<Folder> parent = Folder::open_base(path.substr(0, slash));
  if (!parent) return parent;
  const std::string name = path.substr(slash + 1);
  core::Result<Folder> folder = parent->make(name);
  if (!folder && folder.error() == EEXIST) folder = parent->open(name);
  if (folder && !folder->is_ours_alone()) return core::Errno{EPERM};
  return folder;
}

}  // namespace

int create_counter_file(const std::string& path) {
  const core::NoCancellation whole;  // counters::read() reads by the C library
  core::Result<Folder> folder = open_folder(path);
  if (!folder) return -folder.error();
  add_ended(*folder);
  // Whoever adds what ended must not see it before it is held, so it waits under another name.
  uint64_t value = 0;
  if (!sys::random(&value, sizeof value)) return -EAGAIN;
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(value));
  const std::string hidden = std::string("new-") + name;
  Descriptor file(folder->open_file(hidden, O_RDWR | O_CREAT | O_EXCL, kMode));
  if (file.get() < 0) return file.get();
  int result = hold(file.get(), F_WRLCK);
  if (result == 0) result = folder->rename(hidden, name);
  if (result == 0) return file.release();
  folder->remove(hidden);
  return result;
}

std::vector<counters::Row> counted_by_device(const std::string& path, int own) {
  const core::NoCancellation whole;  // likewise
  std::vector<counters::Row> rows;
  core::Result<Folder> folder = open_folder(path);
  if (!folder) return rows;
  counters::Snapshot snapshot;
  Sums sums(*folder, O_RDONLY | O_NONBLOCK);
  // Meanwhile nothing goes from the others into the sums.
  if (sums.get() >= 0) {
    sums.share();
    if (counters::read(sums.get(), snapshot)) counters::add_to(rows, snapshot);
  }
  if (own >= 0 && counters::read(own, snapshot)) counters::add_to(rows, snapshot);
  struct stat mine {};
  if (own >= 0) sys::fstat(own, &mine);
  for (const std::string& name : folder->names()) {
    struct stat status;
    if (!is_data(name) || folder->status(name, status) != 0) continue;
    // To close any descriptor of it would end the lock of this process's own.
    if (own >= 0 && status.st_ino == mine.st_ino && status.st_dev == mine.st_dev) continue;
    const Descriptor file(folder->open_file(name, O_RDONLY | O_NONBLOCK));
    if (file.get() >= 0 && counters::read(file.get(), snapshot)) counters::add_to(rows, snapshot);
  }
  return rows;
}

int create_counter_file() {
  const std::string path = counters_path();
  return path.empty() ? -ENOENT : create_counter_file(path);
}

std::vector<counters::Row> counted_by_device() {
  const std::string path = counters_path();
  return path.empty() ? std::vector<counters::Row>{}
                      : counted_by_device(path, counters::own_file());
}

}  // namespace uiw::vkernel
