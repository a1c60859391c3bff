// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs/event_pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>

#include "core/descriptors.h"
#include "core/log.h"
#include "core/raw_sys.h"

namespace uiw::verbs {

namespace sys = core::sys;

EventPipe::~EventPipe() {
  while (first_) {
    Kept* next = first_->next;
    delete first_;
    first_ = next;
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
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int own = sys::open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (own < 0) {
    if (own == -ENOENT) {
      core::log(core::LogLevel::kError,
                "cannot make an event channel: /proc is not mounted; mount it to use RDMA here");
    }
    return -own;
  }
  fd_ = own;
  return 0;
}

bool EventPipe::write(const EventRecord& record) {
  long result;
  do {
    result = sys::write(fd_, &record, record_size_);  // below PIPE_BUF: all or nothing
  } while (result == -EINTR);
  return result != -EAGAIN;
}

void EventPipe::send(uint64_t element, uint32_t type) {
  const EventRecord record{element, type, 0};
  if (!keeping_.load(std::memory_order_acquire) && write(record)) return;
  const std::lock_guard lock(mutex_);
  keep(record);
  // Once more: if the reader emptied the pipe between our first try and keep(), it saw no backlog
  // and will not call flush(). If this try fails too, its next read comes after keep().
  write_kept();
}

void EventPipe::keep(const EventRecord& record) {
  Kept* kept = new (std::nothrow) Kept{record, nullptr};
  if (!kept) {
    core::log(core::LogLevel::kError, "out of memory: an event is lost");
    return;
  }
  (last_ ? last_->next : first_) = kept;
  last_ = kept;
  if (!keeping_.exchange(true, std::memory_order_seq_cst))
    backlog_.fetch_add(1, std::memory_order_seq_cst);
}

void EventPipe::write_kept() {
  while (first_ && write(first_->record)) {
    Kept* next = first_->next;
    delete first_;
    first_ = next;
  }
  if (first_) return;
  last_ = nullptr;
  if (keeping_.exchange(false, std::memory_order_seq_cst))
    backlog_.fetch_sub(1, std::memory_order_seq_cst);
}

void EventPipe::flush() {
  if (!keeping_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  write_kept();
}

uint32_t EventPipe::purge(uint64_t element) {
  const std::lock_guard lock(mutex_);
  uint32_t purged = 0;
  // What is kept is younger than what is in the pipe: set it aside and let it follow.
  Kept* younger = first_;
  first_ = last_ = nullptr;
  // Not more than is there now: other threads may keep on writing, but none about `element`.
  int octets = 0;
  sys::ioctl(fd_, FIONREAD, &octets);
  EventRecord record{};
  while (octets > 0) {
    const long got = sys::read(fd_, &record, record_size_);
    if (got == -EINTR) continue;
    if (got <= 0) break;  // the application was faster
    octets -= static_cast<int>(got);
    if (record.element == element) {
      ++purged;
    } else {
      keep(record);
    }
  }
  while (younger) {
    Kept* next = younger->next;
    if (younger->record.element == element) {
      ++purged;
    } else {
      keep(younger->record);
    }
    delete younger;
    younger = next;
  }
  write_kept();
  return purged;
}

}  // namespace uiw::verbs
