// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The table of descriptors in children, by whichever call they were made.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

#include "core/raw_sys.h"
#include "support/descriptor_limit.h"
#include "support/forking_handler.h"
#include "support/in_child.h"
#include "unit/vkernel/fd_table_rig.h"

namespace uiw::vkernel::test {
namespace {

using uiw::test::in_child;

TEST(FdTableFork, TheChildGetsEnodevAndEndOfFile) {
  Fate fate;
  const int fd = open_file(fate);
  in_child([&] {
    const Written written = write_to(fd);
    if (!written.handled || written.result != -1 || written.error_number != ENODEV) return 1;
    pollfd polled = {fd, POLLIN, 0};
    if (poll(&polled, 1, 0) != 1 || (polled.revents & POLLHUP) == 0) return 2;
    char octet;
    if (read(fd, &octet, 1) != 0) return 3;
    if (find_file(fd)) return 4;
    if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return 5;
    close_as_hooked(fd);
    if (is_flagged(fd)) return 6;
    return fate.closed == 0 && fate.deleted == 0 ? 0 : 7;  // never the parent's business
  });
  // The parent's goes on.
  EXPECT_TRUE(write_to(fd).handled);
  EXPECT_EQ(fate.writes, 1);
  close_as_hooked(fd);
  EXPECT_EQ(fate.deleted, 1);
}

// While it lives no descriptor can be had: none below `limit` is free, and that is the limit.
class AllDescriptorsInUse {
 public:
  explicit AllDescriptorsInUse(rlim_t limit) : limit_(limit) {
    for (int fd; (fd = dup(STDIN_FILENO)) >= 0;) used_.push_back(fd);
  }
  ~AllDescriptorsInUse() {
    for (int fd : used_) close(fd);
  }

 private:
  const uiw::test::DescriptorLimit limit_;
  std::vector<int> used_;
};

// Two channels, of which one takes the place that the other needs.
TEST(FdTableFork, TheChildGetsEnodevAndNoEventAlsoWithAllDescriptorsInUse) {
  Fate fate, another;
  const int fd = open_file(fate), other = open_file(another);
  fcntl(other, F_SETFD, 0);
  {
    const AllDescriptorsInUse all(static_cast<rlim_t>(std::max(fd, other)) + 20);
    in_child([&] {
      for (int one : {fd, other}) {
        const Written written = write_to(one);
        if (!written.handled || written.result != -1 || written.error_number != ENODEV) return 1;
        pollfd polled = {one, POLLIN, 0};
        if (poll(&polled, 1, 0) != 1 || (polled.revents & POLLHUP) == 0) return 2;
        struct stat status;
        fstat(one, &status);
        uiwarp_vk_fix_stat(one, &status);
        if (!S_ISCHR(status.st_mode)) return 3;
        if (fcntl(one, F_GETFD) != (one == fd ? FD_CLOEXEC : 0)) return 4;
      }
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(write_to(fd).error_number == ENODEV ? 0 : 1);
      int status;
      waitpid(grandchild, &status, 0);
      return status == 0 ? 0 : 5;
    });
  }
  for (int one : {fd, other}) {
    EXPECT_TRUE(write_to(one).handled);
    close_as_hooked(one);
  }
}

// The limit was lowered below what is open, so nothing can take the place of the parent's.
TEST(FdTableFork, NothingOfTheChildReachesTheParentsChannel) {
  Fate fate, another;
  const int fd = open_file(fate), other = open_file(another);
  {
    const AllDescriptorsInUse all(0);
    in_child([&] {
      int refused = 0;
      for (int one : {fd, other}) {
        const Written written = write_to(one);
        refused += written.handled && written.error_number == ENODEV;
        // What was closed for a number is not the parent's any more.
        if (!written.handled && fcntl(one, F_GETFD) != -1) return 1;
      }
      return refused >= 1 ? 0 : 2;
    });
  }
  EXPECT_EQ(fate.writes + another.writes, 0);
  close_as_hooked(fd);
  close_as_hooked(other);
}

TEST(FdTableFork, TheChildCanOpenItsOwn) {
  Fate fate;
  const int fd = open_file(fate);
  in_child([&] {
    Fate own;
    const int mine = open_file(own);
    if (!write_to(mine).handled || own.writes != 1) return 1;
    if (write_to(fd).error_number != ENODEV) return 2;
    close_as_hooked(mine);
    return own.deleted == 1 ? 0 : 3;
  });
  close_as_hooked(fd);
}

// A child may close all that it has inherited, whichever way it came to be.
TEST(FdTableFork, WhatTheParentsStackOpenedIsNotKept) {
  Fate fate;
  const int device = open_file(fate);
  const int own = core::sys::open("/dev/null", O_RDONLY | O_CLOEXEC);
  in_child([&] {
    if (uiwarp_vk_keeps(own)) return 1;
    // In a child that opens devices of its own, too.
    Fate childs;
    const int opened = open_file(childs);
    if (uiwarp_vk_keeps(own) || is_flagged(own)) return 2;
    close_as_hooked(opened);
    return 0;
  });
  // Without fork's handlers, and with our memory.
  const auto ended = [](pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  const long cloned = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (cloned == 0) _exit(uiwarp_vk_keeps(own));
  EXPECT_EQ(ended(static_cast<pid_t>(cloned)), 0);
  const pid_t vforked = vfork();
  if (vforked == 0) _exit(uiwarp_vk_keeps(own));
  EXPECT_EQ(ended(vforked), 0);
  EXPECT_TRUE(uiwarp_vk_keeps(own)) << "a child has changed what the parent knows";
  core::sys::close(own);
  close_as_hooked(device);
}

// A child with a copy of our memory for which no fork handler ran.
TEST(FdTableFork, AChildThatForkKnowsNothingOfGetsEnodev) {
  Fate fate;
  const int fd = open_file(fate);
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    int handled = 0;
    const bool refused = uiwarp_vk_write(fd, "command", 7, &handled) == -1 && handled == 1 &&
                         errno == ENODEV && fate.writes == 0;
    uiwarp_vk_closing(fd);
    _exit(refused && !find_file(fd) && fate.closed == 0 ? 0 : 1);
  }
  int status;
  ASSERT_EQ(waitpid(static_cast<pid_t>(child), &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(write_to(fd).handled);
  close_as_hooked(fd);
  EXPECT_EQ(fate.deleted, 1);
}

TEST(FdTableFork, TheGrandchildToo) {
  Fate fate;
  const int fd = open_file(fate);
  in_child([&] {
    const pid_t child = fork();
    if (child == 0) _exit(write_to(fd).error_number == ENODEV ? 0 : 1);
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  });
  close_as_hooked(fd);
}

// By the handler of a signal that came while the table was locked.
TEST(FdTableFork, ASignalHandlerMayFork) {
  Fate fate;
  const int fd = open_file(fate);
  uiw::test::interrupted_by_forks(
      [&] {
        write_to(fd);
        const int copy = dup(fd);
        uiwarp_vk_dup(fd, copy);
        close_as_hooked(copy);
      },
      [&] { return write_to(fd).error_number == ENODEV ? 0 : 1; });
  close_as_hooked(fd);
}

// The child has closed an inherited descriptor by a raw system call, and opened a file there.
TEST(FdTableFork, TheGrandchildKeepsItsOwnFile) {
  Fate fate, another;
  const int fd = open_file(fate), other = open_file(another);
  in_child([&] {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    syscall(SYS_close, fd);
    if (syscall(SYS_dup3, ends[1], fd, 0) != fd) return 2;
    const pid_t child = fork();
    if (child == 0) {
      if (write_to(other).error_number != ENODEV) _exit(1);
      if (write_to(fd).handled) _exit(2);
      _exit(write(fd, "log", 3) == 3 ? 0 : 3);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) return 3;
    char log[3];
    return read(ends[0], log, sizeof log) == 3 ? 0 : 4;
  });
  close_as_hooked(fd);
  close_as_hooked(other);
}

TEST(FdTableFork, AVforkChildThatClosesLeavesTheTableAlone) {
  Fate fate;
  const int fd = open_file(fate);
  const pid_t child = vfork();  // shares our memory: what it changed would be changed here
  if (child == 0) {
    uiwarp_vk_closing(fd);
    uiwarp_vk_dup(fd, fd + 1);
    syscall(SYS_close, fd);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(fate.closed, 0);
  EXPECT_TRUE(write_to(fd).handled);
  EXPECT_EQ(fate.writes, 1);
  close_as_hooked(fd);
  EXPECT_EQ(fate.deleted, 1);
}

// It may write what it likes to the number, which is its own again.
TEST(FdTableFork, AVforkChildMayReuseTheNumber) {
  Fate fate;
  const int fd = open_file(fate);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = vfork();
  if (child == 0) {
    uiwarp_vk_closing(fd);
    dup2(ends[1], fd);
    int handled = -1;
    uiwarp_vk_write(fd, "exec: no such file", 18, &handled);
    _exit(handled == 0 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(fate.writes, 0);
  EXPECT_EQ(fate.closed, 0);
  EXPECT_TRUE(is_flagged(fd));
  EXPECT_TRUE(write_to(fd).handled);
  close_as_hooked(fd);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace uiw::vkernel::test
