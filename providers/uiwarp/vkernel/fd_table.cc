// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/fd_table.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <bitset>
#include <cerrno>
#include <mutex>
#include <new>
#include <optional>

#include "core/descriptors.h"
#include "core/fork_mutex.h"
#include "core/generation.h"
#include "core/log.h"
#include "core/raw_sys.h"
#include "uiwarp/uiwarp-abi.h"
#include "vkernel/raw_files.h"

namespace uiw::vkernel {
namespace {

namespace sys = core::sys;

using core::kDescriptors;
static_assert(kDescriptors == UIWARP_VK_FDS);
static_assert(static_cast<int>(core::DescriptorUse::kDevice) == UIWARP_VK_FD_DEVICE);

// What fstat() says of a file.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Identity&) const = default;
};

Identity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino};
}

// What one open() made; shared by the descriptors that dup() made of it.
struct OpenFile {
  DeviceFile* file = nullptr;  // one reference
  unsigned descriptors = 0;
  Identity identity;
  int status_flags = 0;      // those of F_GETFL that must be there
  bool from_parent = false;  // inherited by fork(): dead
};

struct Table {
  core::ForkMutex lock;
  OpenFile* slots[kDescriptors] = {};
  std::bitset<kDescriptors> used;  // the slots that are not null
  // Whose table this is. The id tells children that share our memory, the generation the others.
  int owner = 0;
  std::atomic<unsigned> generation{0};
  // In the child of a fork what has taken the place of the parent's event channels.
  Identity ended;
  bool fork_handlers = false;
};

constinit Table table;

// All descriptors of /dev/null have the same inode. Ours have O_APPEND on top of O_RDWR, which
// nothing else gives them.
int marking_flags(const DeviceFile& file) {
  return file.kind() == DeviceFile::Kind::kUverbs ? O_APPEND | O_RDWR : 0;
}

FileRef reference(const OpenFile& open) {
  open.file->add_reference();
  return FileRef(open.file);
}

bool is_channel(const OpenFile& open) {
  return open.file->kind() == DeviceFile::Kind::kUcma;
}

// Whether that is what a descriptor of the file is, also in a child.
bool is_its(const OpenFile& open, const struct stat& status) {
  const Identity identity = identity_of(status);
  return identity == open.identity ||
         (open.from_parent && is_channel(open) && identity == table.ended);
}

bool is_unchanged(int fd, const OpenFile& open) {
  struct stat status;
  if (sys::fstat(fd, &status) != 0 || !is_its(open, status)) return false;
  return open.status_flags == 0 ||
         (sys::fcntl(fd, F_GETFL) & open.status_flags) == open.status_flags;
}

// Whether the memory is that of the process that opened the files, or of a child that shares it.
bool is_own_table() {
  return table.generation.load(std::memory_order_acquire) == core::generation();
}

bool may_change_table() {
  return is_own_table() && raw::getpid() == table.owner;
}

void own_table() {
  table.owner = raw::getpid();
  table.generation.store(core::generation(), std::memory_order_release);
}

bool is_in_range(int fd) {
  return fd >= 0 && fd < kDescriptors;
}

void set_slot(int fd, OpenFile* open) {
  table.slots[fd] = open;
  table.used.set(static_cast<size_t>(fd), open != nullptr);
  if (open == nullptr) {
    // It may be one that the stack has opened since.
    if (core::descriptor_use(fd) == core::DescriptorUse::kDevice) core::release_descriptor(fd);
  } else {
    core::set_descriptor_use(fd, core::DescriptorUse::kDevice);
    ++open->descriptors;
  }
}

// Empties a slot. Returns the file when that was its last descriptor: the caller, without the lock,
// has to call closed() and drop it.
[[nodiscard]] DeviceFile* clear_slot(int fd) {
  OpenFile* open = table.slots[fd];
  if (open == nullptr) return nullptr;
  set_slot(fd, nullptr);
  if (--open->descriptors > 0) return nullptr;
  // A file of the parent may have had its locks held at the moment of fork(): never touched again.
  DeviceFile* file = open->from_parent ? nullptr : open->file;
  delete open;
  return file;
}

// Calls `visit(fd, its file)` for each descriptor, however many there have been. In the child of a
// signal handler's fork one may be half set.
template <class Visit>
void for_each(Visit&& visit) {
  for (size_t fd = table.used._Find_first(); fd < table.used.size(); fd = table.used._Find_next(fd))
    if (OpenFile* const open = table.slots[fd]) visit(static_cast<int>(fd), *open);
}

void finish(DeviceFile* file) {
  if (file == nullptr) return;
  file->closed();
  file->drop_reference();
}

// ---- fork ----

void before_fork() {
  table.lock.before_fork();
}

void in_parent() {
  table.lock.in_parent();
}

// A descriptor at end of file: poll() says POLLHUP, and read() 0.
int ended_pipe() {
  int ends[2];
  if (const int result = sys::pipe2(ends, O_CLOEXEC); result < 0) return result;
  sys::close(ends[1]);
  return ends[0];
}

// One that has the number `fd`, where no other is free. A pipe takes two; a socket that is not
// connected says POLLHUP as well.
int ended_socket(int fd) {
  const bool close_on_exec = (sys::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
  sys::close(fd);
  const int ended = sys::socket(AF_UNIX, SOCK_STREAM | (close_on_exec ? SOCK_CLOEXEC : 0), 0);
  if (ended == fd) core::set_descriptor_use(fd, core::DescriptorUse::kDevice);
  return ended;
}

// Puts what is at end of file in the place of the parent's event channels. Where there is no memory
// for it they stay; commands get ENODEV all the same.
void end_channels() {
  int some = -1;
  for_each([&](int fd, const OpenFile& open) {
    if (is_channel(open) && is_unchanged(fd, open)) some = fd;
  });
  if (some < 0) return;
  int ended = ended_pipe();
  if (ended == -EMFILE) ended = ended_socket(some);
  struct stat status;
  if (ended < 0 || sys::fstat(ended, &status) != 0) return;
  for_each([&](int fd, const OpenFile& open) {
    if (fd == ended || !is_channel(open)) return;
    // A number that was closed behind our back may be a file of the program's by now.
    if (fd != some && !is_unchanged(fd, open)) return;
    const int close_on_exec = sys::fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
    raw::dup3(ended, fd, close_on_exec);
  });
  table.ended = identity_of(status);
  if (ended != some) sys::close(ended);
}

// Only system calls here: the child of a process with threads may not allocate.
void in_child() {
  end_channels();
  for_each([&](int, OpenFile& open) {
    if (open.file->after_fork() != DeviceFile::AfterFork::kWorks) open.from_parent = true;
  });
  core::forget_own_descriptors();
  own_table();
  table.lock.in_child();
}

// With the lock held.
void watch_forks() {
  if (table.fork_handlers) return;
  table.fork_handlers = true;
  own_table();
  pthread_atfork(before_fork, in_parent, in_child);
}

}  // namespace

int register_file(int fd, DeviceFile* file) {
  int error = 0;
  OpenFile* open = nullptr;
  DeviceFile* stale = nullptr;
  struct stat status;
  if (!is_in_range(fd)) {
    core::log(core::LogLevel::kError,
              "cannot open an RDMA device as descriptor %d: only the first %d can be one", fd,
              kDescriptors);
    error = EMFILE;
  } else if (int result = sys::fstat(fd, &status); result < 0) {
    error = -result;
  } else if (open = new (std::nothrow) OpenFile; open == nullptr) {
    error = ENOMEM;
  }
  if (error != 0) {
    finish(file);
    return error;
  }
  open->file = file;
  open->identity = identity_of(status);
  open->status_flags = marking_flags(*file);
  {
    std::lock_guard lock(table.lock);
    watch_forks();
    stale = clear_slot(fd);
    set_slot(fd, open);
  }
  finish(stale);
  return 0;
}

FileRef find_file(int fd) {
  if (!is_in_range(fd)) return {};
  std::lock_guard lock(table.lock);
  OpenFile* open = table.slots[fd];
  if (open == nullptr || open->from_parent || !is_own_table() || !is_unchanged(fd, *open)) {
    return {};
  }
  return reference(*open);
}

ssize_t write_file_descriptor(int fd, const void* buffer, size_t size, bool& handled,
                              int& error_number) {
  handled = false;
  if (!is_in_range(fd)) return -1;
  FileRef file;
  DeviceFile* stale = nullptr;
  {
    std::lock_guard lock(table.lock);
    OpenFile* open = table.slots[fd];
    if (open == nullptr) return -1;
    if (is_unchanged(fd, *open)) {
      handled = true;
      if (open->from_parent || !is_own_table()) {
        error_number = ENODEV;
        return -1;
      }
      file = reference(*open);
    } else if (may_change_table()) {
      stale = clear_slot(fd);
    }
  }
  finish(stale);
  if (!file) return -1;
  return file->write(fd, buffer, size, error_number);
}

int control_file_descriptor(int fd, unsigned long request, void* argument, bool& handled,
                            int& error_number) {
  const FileRef file = find_file(fd);
  const std::optional<int> answer =
      file ? file->control(fd, request, argument) : std::optional<int>();
  handled = answer.has_value();
  error_number = answer.value_or(0);
  return error_number == 0 ? 0 : -1;
}

void forget_descriptor(int fd) {
  if (!is_in_range(fd) || !may_change_table()) return;
  FileRef ending;
  {
    std::lock_guard lock(table.lock);
    OpenFile* open = table.slots[fd];
    if (open != nullptr && open->descriptors == 1 && !open->from_parent) {
      ending = reference(*open);
    }
  }
  if (ending) ending->closing();
  DeviceFile* last;
  {
    std::lock_guard lock(table.lock);
    last = clear_slot(fd);
  }
  finish(last);
}

void copy_descriptor(int fd, int copy) {
  if (!is_in_range(fd) || fd == copy || !may_change_table()) return;
  DeviceFile* stale = nullptr;
  {
    std::lock_guard lock(table.lock);
    OpenFile* open = table.slots[fd];
    if (open != nullptr && !is_unchanged(fd, *open)) open = nullptr;
    if (!is_in_range(copy)) {
      if (open == nullptr) return;
      core::log(core::LogLevel::kError,
                "descriptor %d is a copy of an RDMA device but cannot be used as one: only the "
                "first %d can",
                copy, kDescriptors);
      return;
    }
    // Taken before the old one is cleared: both may be the same file.
    if (open != nullptr) ++open->descriptors;
    stale = clear_slot(copy);
    if (open != nullptr) {
      set_slot(copy, open);
      --open->descriptors;
    }
  }
  finish(stale);
}

void fix_stat(int fd, struct stat& status) {
  if (!is_in_range(fd)) return;
  std::lock_guard lock(table.lock);
  const OpenFile* open = table.slots[fd];
  const dev_t number = open ? open->file->device_number() : 0;
  if (number == 0) return;
  if (!is_its(*open, status)) return;
  status.st_mode = S_IFCHR | 0666;
  status.st_rdev = number;
  status.st_size = 0;
}

bool is_kept(int fd) {
  return core::descriptor_use(fd) == core::DescriptorUse::kOwn && may_change_table();
}

}  // namespace uiw::vkernel
