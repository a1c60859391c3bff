// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A descriptor that children of fork() do not keep. A copy there would hold what closing it here is
// to give up, such as the port of a socket, for as long as the child lives. In children that are
// made by other ways (clone(2), raw system calls) nobody closes it.
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

  // A socket, which nobody else closes from now on. While it has none. Thread: any, one at a time.
  void take(int fd);
  // It is the caller's, and children keep it, too; -1 when it is closed. Thread: likewise.
  int release();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // Also when it is closed already. A fork waits for it. Thread: any, one at a time.
  void close();

  // The handlers of pthread_atfork(3) know it.
  struct Forks;

 private:
  bool is_same() const;

  int fd_ = -1;  // closed
  ino_t inode_ = 0;
  ListLink<UnsharedDescriptor> link_;
};

}  // namespace uiw::core
