// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A descriptor that children of fork() do not keep. A child's copy would keep alive what closing it
// here should release, such as the port of a socket. In children made in other ways (clone(2), raw
// system calls) it stays open.
#pragma once

#include <sys/types.h>

#include "core/list.h"

namespace uiw::core {

class UnsharedDescriptor {
 public:
  UnsharedDescriptor() = default;
  explicit UnsharedDescriptor(int fd) { take(fd); }
  ~UnsharedDescriptor() { close(); }
  UnsharedDescriptor(const UnsharedDescriptor&) = delete;
  UnsharedDescriptor& operator=(const UnsharedDescriptor&) = delete;

  // Takes over a socket, which no other code may close from now on. This object must not have one.
  // Thread: any, one at a time.
  void take(int fd);
  // Gives the descriptor to the caller; children keep it from now on. -1 when there is none.
  // Thread: likewise.
  int release();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Closes it, if it is open. A fork waits for that. Thread: any, one at a time.
  void close();

  // Used by the handlers of pthread_atfork(3).
  struct Forks;

 private:
  bool is_same() const;

  int fd_ = -1;  // -1: none
  ino_t inode_ = 0;
  ListLink<UnsharedDescriptor> link_;
};

}  // namespace uiw::core
