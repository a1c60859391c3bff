// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/event_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "core/log.h"
#include "core/raw_sys.h"
#include "vkernel/raw_files.h"

namespace uiw::vkernel {
namespace {

namespace sys = core::sys;

constexpr char kToken = 0;
constexpr long kAtATime = 1024;  // octets of one read(): small for the stacks of small threads

// A new open file description of the pipe behind `fd`.
int reopen(int fd, int flags) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
  return sys::open(path, O_RDWR | flags);
}

}  // namespace

EventPipe::~EventPipe() {
  // Somebody may have closed our number and opened something else there: leave that alone.
  if (fd_ >= 0 && still_ours()) sys::close(fd_);
}

int EventPipe::create(int flags, int& application_fd) {
  int ends[2];
  if (int result = sys::pipe2(ends, O_CLOEXEC); result < 0) return -result;
  const int ours = reopen(ends[0], O_CLOEXEC | O_NONBLOCK);
  const int theirs = ours < 0 ? ours : reopen(ends[0], flags & (O_CLOEXEC | O_NONBLOCK));
  sys::close(ends[0]);
  sys::close(ends[1]);
  if (theirs < 0) {
    if (theirs == -ENOENT) {
      core::log(core::LogLevel::kError,
                "cannot make an event channel: /proc is not mounted; mount it to use RDMA here");
    }
    if (ours >= 0) sys::close(ours);
    return -theirs;
  }
  struct stat status;
  sys::fstat(ours, &status);
  fd_ = ours;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  application_fd = theirs;
  return 0;
}

bool EventPipe::still_ours() const {
  struct stat status;
  return sys::fstat(fd_, &status) == 0 && status.st_ino == inode_ && status.st_dev == device_;
}

// The state is stored before the octet is there, and taken back after that was read: between the
// two is the pipe's own lock. So whoever has read the octet takes back the state that came with it.
void EventPipe::tell() {
  const bool awaited = state_.exchange(kTold, std::memory_order_acq_rel) == kAwaited;
  if (still_ours()) {
    // Another octet wakes who polls, which in a full pipe needs room: others are left. If none is,
    // they were taken back since, and so were the events that this is about.
    while (sys::write(fd_, &kToken, sizeof kToken) == -EAGAIN && read_some() > 0) {
    }
  }
  if (awaited) raw::wake_all(state_);
}

bool EventPipe::take_back() {
  bool taken = true;
  if (still_ours()) {
    long got = read_some();
    taken = got > 0;
    while (got == kAtATime) got = read_some();
  }
  uint32_t told = kTold;
  state_.compare_exchange_strong(told, kEmpty, std::memory_order_relaxed);
  return taken;
}

long EventPipe::read_some() {
  char tokens[kAtATime];
  return sys::read(fd_, tokens, sizeof tokens);
}

int EventPipe::wait() {
  if (!still_ours()) return EBADF;
  uint32_t seen = kEmpty;
  if (!state_.compare_exchange_strong(seen, kAwaited, std::memory_order_acq_rel) && seen == kTold)
    return 0;
  return -raw::wait_while(state_, kAwaited);
}

}  // namespace uiw::vkernel
