// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/unshared_descriptor.h"

#include <pthread.h>
#include <sys/stat.h>

#include <mutex>
#include <utility>

#include "core/assert.h"
#include "core/fork_mutex.h"
#include "core/raw_sys.h"

namespace uiw::core {

struct UnsharedDescriptor::Forks {
  // The last lock in the lock order. Held while a descriptor is closed, so that a forked child
  // either has it in the list or does not have it at all.
  ForkMutex mutex;
  List<UnsharedDescriptor, &UnsharedDescriptor::link_> open;  // under mutex
  bool watched = false;                                       // likewise

  static void before();
  static void in_parent();
  static void in_child();
  void watch() {
    if (!std::exchange(watched, true)) pthread_atfork(before, in_parent, in_child);
  }
};

namespace {

constinit UnsharedDescriptor::Forks g_forks;

}  // namespace

void UnsharedDescriptor::Forks::before() {
  g_forks.mutex.before_fork();
}

void UnsharedDescriptor::Forks::in_parent() {
  g_forks.mutex.in_parent();
}

// Allocates nothing and only closes: the child of a process with threads may do no more. An earlier
// handler of the program may have closed all descriptors and opened others, hence is_same(). If a
// signal handler forks in the middle of a change, the child keeps the descriptors, as the list may
// be inconsistent.
void UnsharedDescriptor::Forks::in_child() {
  const bool whole = !g_forks.mutex.is_inner();
  while (UnsharedDescriptor* const one = whole ? g_forks.open.first() : nullptr) {
    g_forks.open.remove(*one);
    if (one->is_same()) sys::close(one->fd_);
    one->fd_ = -1;
  }
  g_forks.mutex.in_child();
}

void UnsharedDescriptor::take(int fd) {
  UIW_ASSERT(fd_ < 0);
  struct stat status;
  const ino_t inode = sys::fstat(fd, &status) == 0 ? status.st_ino : 0;
  const std::lock_guard lock(g_forks.mutex);
  g_forks.watch();
  fd_ = fd;
  inode_ = inode;
  g_forks.open.append(*this);
}

int UnsharedDescriptor::release() {
  const std::lock_guard lock(g_forks.mutex);
  if (fd_ >= 0) g_forks.open.remove(*this);
  return std::exchange(fd_, -1);
}

void UnsharedDescriptor::close() {
  const std::lock_guard lock(g_forks.mutex);
  if (fd_ < 0) return;
  g_forks.open.remove(*this);
  sys::close(std::exchange(fd_, -1));
}

bool UnsharedDescriptor::is_same() const {
  struct stat status;
  return sys::fstat(fd_, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == inode_;
}

}  // namespace uiw::core
