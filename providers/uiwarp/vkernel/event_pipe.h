// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A descriptor that is readable while events are queued, so that poll, epoll, SIGIO and O_NONBLOCK
// of the application work natively.
//
// It is one pipe opened O_RDWR through /proc/thread-self/fd (never EOF, never SIGPIPE, one inode of
// its own by which a reused descriptor number is recognised) with two open file descriptions: the
// application's, which it owns, closes and may set O_NONBLOCK on, and ours, always non-blocking.
// Octets are in the pipe while events are queued. Each one that is put in wakes whoever polls, also
// behind others: to Linux from 5.14 on, and before 5.5, an edge (EPOLLET) is every write() to a
// pipe that was polled. How many events there are is the owner's business.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace uiw::vkernel {

class EventPipe {
 public:
  EventPipe() = default;
  ~EventPipe();
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  // Makes the pipe. `flags`: O_CLOEXEC and O_NONBLOCK are honoured on the application's descriptor,
  // which is returned in `application_fd`. 0 or a positive errno (EMFILE, ENFILE, ENOENT without
  // /proc). Call once.
  int create(int flags, int& application_fd);

  // Puts an octet in; takes out all that are in. Two system calls each, one more where somebody is
  // in wait(), or for each 1,024 octets. None of them blocks. False when there is none (and would
  // be, were the pipe still ours). Thread: any, several at a time.
  void tell();
  bool take_back();

  // Waits until an event is queued; another thread may take it first.
  // 0, or EINTR when a signal handler ran that was installed without SA_RESTART, or EBADF when the
  // pipe was closed behind our back. Any thread, no lock held.
  int wait();

 private:
  bool still_ours() const;
  long read_some();

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  enum : uint32_t {
    kEmpty,    // none is in
    kAwaited,  // the same, and somebody sleeps in wait() until that changes
    kTold,     // some are in, or about to be
  };
  std::atomic<uint32_t> state_{kEmpty};
};

}  // namespace uiw::vkernel
