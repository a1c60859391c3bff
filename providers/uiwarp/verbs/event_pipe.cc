// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/event_pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "core/descriptors.h"
#include "core/log.h"
#include "core/raw_sys.h"

namespace uiw::verbs {

namespace sys = core::sys;

namespace {

// Octets: the smallest pipe that Linux makes, and the most that one write() writes atomically
// (PIPE_BUF).
constexpr size_t kPipeSize = 4096;

}  // namespace

// The sources may have been freed, so their lists are not touched.
EventPipe::~EventPipe() {
  for (Kept* kept = kept_.first(); kept;) {
    Kept* const next = kept_.next(*kept);
    delete kept;
    kept = next;
  }
  if (keeping_.load(std::memory_order_relaxed)) backlog_.fetch_sub(1, std::memory_order_relaxed);
  if (fd_ >= 0) sys::close(fd_);
}

int EventPipe::create(int* reader) {
  int ends[2];
  if (const int result = sys::pipe2(ends, O_CLOEXEC); result < 0) return -result;
  const int error = join(ends[0]);
  sys::close(ends[1]);
  if (error) {
    sys::close(ends[0]);
    return error;
  }
  core::release_descriptor(ends[0]);  // it is the program's
  *reader = ends[0];
  return 0;
}

int EventPipe::join(int fd) {
  struct stat st;
  if (const int result = sys::fstat(fd, &st); result < 0) return -result;
  // The virtual kernel's channels are pipes; a real kernel's would not understand our records.
  if (!S_ISFIFO(st.st_mode)) return EINVAL;
  char path[40];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
  const int own = sys::open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (own < 0) {
    if (own == -ENOENT) {
      core::log(core::LogLevel::kError,
                "cannot make an event channel: /proc is not mounted; mount it to use RDMA here");
    }
    return -own;
  }
  fd_ = own;
  // If this fails, a larger pipe only costs time.
  static_cast<void>(sys::fcntl(own, F_SETPIPE_SZ, kPipeSize));
  return 0;
}

// All or nothing: `size` is kPipeSize at most.
bool EventPipe::write(const void* records, size_t size) {
  long result;
  do {
    result = sys::write(fd_, records, size);
  } while (result == -EINTR);
  return result != -EAGAIN;
}

void EventPipe::send(EventSource& source, uint32_t type) {
  const EventRecord record{source.element_, type, 0};
  const std::lock_guard lock(mutex_);
  if (kept_.empty() && write(&record, record_size_)) return;
  keep(source, record);
  // Try again: if the reader emptied the pipe between our first try and keep(), it saw no backlog
  // and will not call flush(). If this try fails too, its next read comes after keep().
  write_kept();
}

void EventPipe::keep(EventSource& source, const EventRecord& record) {
  Kept* const kept = new Kept{record, &source, {}, {}};  // never fails: the reserve helps out
  kept_.append(*kept);
  source.kept_.append(*kept);
  if (!keeping_.exchange(true, std::memory_order_seq_cst))
    backlog_.fetch_add(1, std::memory_order_seq_cst);
}

void EventPipe::drop(Kept& kept) {
  kept_.remove(kept);
  kept.source->kept_.remove(kept);
  delete &kept;
}

void EventPipe::write_kept() {
  while (Kept* const oldest = kept_.first()) {
    if (!write(&oldest->record, record_size_)) return;
    drop(*oldest);
  }
  if (keeping_.exchange(false, std::memory_order_seq_cst))
    backlog_.fetch_sub(1, std::memory_order_seq_cst);
}

void EventPipe::flush() {
  if (!keeping_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  write_kept();
}

uint32_t EventPipe::purge(EventSource& source) {
  const std::lock_guard lock(mutex_);
  uint32_t purged = 0;
  for (; Kept* const kept = source.kept_.first(); ++purged) drop(*kept);
  purged += purge_pipe(source.element_);
  write_kept();
  return purged;
}

// Reads all records in the pipe and writes back those of other sources. No other thread writes
// meanwhile, so there is room.
uint32_t EventPipe::purge_pipe(uint64_t element) {
  uint32_t purged = 0;
  uint8_t records[kPipeSize];
  int octets = 0;
  sys::ioctl(fd_, FIONREAD, &octets);
  while (octets > 0) {
    const long got = sys::read(fd_, records, std::min(sizeof records, static_cast<size_t>(octets)));
    if (got == -EINTR) continue;
    if (got <= 0) break;  // the application was faster
    octets -= static_cast<int>(got);
    size_t left = 0;
    for (size_t at = 0; at < static_cast<size_t>(got); at += record_size_) {
      uint64_t of;  // the first member of both kinds of record
      std::memcpy(&of, records + at, sizeof of);
      if (of == element) {
        ++purged;
      } else {
        std::memmove(records + left, records + at, record_size_);
        left += record_size_;
      }
    }
    if (left > 0 && !write(records, left))
      core::log(core::LogLevel::kError, "a full pipe: events are lost");
  }
  return purged;
}

}  // namespace uiw::verbs
