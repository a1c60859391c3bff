// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/fd_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <semaphore>
#include <thread>
#include <vector>

#include "core/raw_sys.h"
#include "support/in_child.h"
#include "uiwarp/uiwarp-abi.h"
#include "vkernel/event_pipe.h"

namespace uiw::vkernel {
namespace {

// What happened to a file; outlives it.
struct Fate {
  std::atomic<int> writes{0}, closed{0}, deleted{0};
};

class TestFile : public DeviceFile {
 public:
  TestFile(Fate& fate, Kind kind) : fate_(fate), kind_(kind) {}
  ~TestFile() override { ++fate_.deleted; }
  Kind kind() const override { return kind_; }
  dev_t device_number() const override { return kind_ == Kind::kUcma ? makedev(10, 58) : 0; }
  ssize_t write(int, const void*, size_t size, int& error_number) override {
    ++fate_.writes;
    if (size > 100) {
      error_number = ENOSPC;
      return -1;
    }
    return static_cast<ssize_t>(size);
  }
  void closed() override { ++fate_.closed; }

 private:
  Fate& fate_;
  Kind kind_;
};

// A registered descriptor whose file is a pipe of its own, as rdma_cm's is.
int open_file(DeviceFile* file) {
  EventPipe pipe;
  int fd = -1;
  EXPECT_EQ(pipe.create(O_CLOEXEC, fd), 0);
  EXPECT_EQ(register_file(fd, file), 0);
  return fd;
}

int open_file(Fate& fate) {
  return open_file(new TestFile(fate, DeviceFile::Kind::kUcma));
}

bool is_flagged(int fd) {
  return uiwarp_vk_fd_flags()[fd] != 0;
}

// uiwarp_vk_write(), with what it says about whose descriptor that is.
struct Written {
  ssize_t result;
  bool handled;
  int error_number;
};
Written write_to(int fd, size_t size = 4) {
  char buffer[200] = {};
  int handled = -1;
  errno = 0;
  const ssize_t result = uiwarp_vk_write(fd, buffer, size, &handled);
  return {result, handled == 1, errno};
}

void close_as_hooked(int fd) {
  uiwarp_vk_closing(fd);
  close(fd);
}

TEST(FdTable, WriteGoesToTheFile) {
  Fate fate;
  const int fd = open_file(fate);
  EXPECT_TRUE(is_flagged(fd));
  Written written = write_to(fd);
  EXPECT_TRUE(written.handled);
  EXPECT_EQ(written.result, 4);
  EXPECT_EQ(fate.writes, 1);
  written = write_to(fd, 101);
  EXPECT_TRUE(written.handled);
  EXPECT_EQ(written.result, -1);
  EXPECT_EQ(written.error_number, ENOSPC);

  close_as_hooked(fd);
  EXPECT_FALSE(is_flagged(fd));
  EXPECT_EQ(fate.closed, 1);
  EXPECT_EQ(fate.deleted, 1);
  EXPECT_FALSE(write_to(fd).handled);
}

TEST(FdTable, ForeignDescriptorsAreNotTouched) {
  EXPECT_FALSE(write_to(STDIN_FILENO).handled);
  EXPECT_FALSE(write_to(-1).handled);
  EXPECT_FALSE(write_to(UIWARP_VK_FDS).handled);
  EXPECT_FALSE(write_to(INT32_MAX).handled);
  uiwarp_vk_closing(-1);
  uiwarp_vk_closing(UIWARP_VK_FDS);
  uiwarp_vk_closing(STDIN_FILENO);
  uiwarp_vk_dup(STDIN_FILENO, 100);
  EXPECT_FALSE(is_flagged(100));
  EXPECT_FALSE(find_file(STDIN_FILENO));
  EXPECT_FALSE(find_file(-1));
}

TEST(FdTable, ADescriptorNumberThatIsTooHighIsRefused) {
  Fate fate;
  EXPECT_EQ(register_file(UIWARP_VK_FDS, new TestFile(fate, DeviceFile::Kind::kUcma)), EMFILE);
  EXPECT_EQ(fate.closed, 1);
  EXPECT_EQ(fate.deleted, 1);
}

TEST(FdTable, ADescriptorThatIsNotOpenIsRefused) {
  Fate fate;
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(fd);
  EXPECT_EQ(register_file(fd, new TestFile(fate, DeviceFile::Kind::kUcma)), EBADF);
  EXPECT_EQ(fate.deleted, 1);
  EXPECT_FALSE(is_flagged(fd));
}

TEST(FdTable, ClosedBehindOurBackAndReusedIsForeign) {
  Fate fate;
  const int fd = open_file(fate);
  syscall(SYS_close, fd);
  int other[2];
  ASSERT_EQ(pipe(other), 0);
  ASSERT_EQ(other[0] == fd || dup2(other[0], fd) == fd, true);
  EXPECT_FALSE(write_to(fd).handled);  // found out here
  EXPECT_FALSE(is_flagged(fd));
  EXPECT_EQ(fate.writes, 0);
  EXPECT_EQ(fate.closed, 1);
  EXPECT_EQ(fate.deleted, 1);
  if (other[0] != fd) close(fd);
  close(other[0]);
  close(other[1]);
}

TEST(FdTable, ClosedBehindOurBackIsForeign) {
  Fate fate;
  const int fd = open_file(fate);
  syscall(SYS_close, fd);
  EXPECT_FALSE(find_file(fd));
  EXPECT_FALSE(write_to(fd).handled);
  EXPECT_EQ(fate.deleted, 1);
}

TEST(FdTable, ReusedForAnotherDeviceOfOursTheOldOneIsClosed) {
  Fate first, second;
  const int fd = open_file(first);
  syscall(SYS_close, fd);
  const int again = open_file(second);
  const int copy = again == fd ? again : dup2(again, fd);
  if (again != fd) uiwarp_vk_dup(again, fd);
  EXPECT_EQ(copy, fd);
  EXPECT_EQ(first.deleted, 1);
  EXPECT_TRUE(write_to(fd).handled);
  EXPECT_EQ(second.writes, 1);
  if (again != fd) close_as_hooked(again);
  close_as_hooked(fd);
  EXPECT_EQ(second.deleted, 1);
}

TEST(FdTable, WhatTheStackOpensIsKept) {
  Fate fate;
  const int device = open_file(fate);
  const int own = core::sys::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(is_flagged(own));
  EXPECT_TRUE(uiwarp_vk_keeps(own));
  EXPECT_FALSE(write_to(own).handled);
  uiwarp_vk_closing(own);  // changes nothing
  EXPECT_TRUE(uiwarp_vk_keeps(own));
  for (int foreign : {device, STDIN_FILENO, -1, UIWARP_VK_FDS}) {
    EXPECT_FALSE(uiwarp_vk_keeps(foreign)) << foreign;
  }
  // A device's number that was closed behind our back, and is the stack's now.
  syscall(SYS_close, device);
  std::vector<int> others;
  int again = core::sys::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (; again >= 0 && again != device; again = core::sys::open("/dev/null", O_RDONLY | O_CLOEXEC))
    others.push_back(again);
  for (int fd : others) core::sys::close(fd);
  ASSERT_EQ(again, device);
  EXPECT_TRUE(uiwarp_vk_keeps(again));
  EXPECT_FALSE(write_to(again).handled);
  EXPECT_EQ(fate.deleted, 1);
  EXPECT_TRUE(uiwarp_vk_keeps(again)) << "forgetting the device forgot who has the number";
  for (int fd : {own, again}) {
    EXPECT_EQ(core::sys::close(fd), 0);
    EXPECT_FALSE(is_flagged(fd));
  }
}

TEST(FdTable, CopiesShareTheFileUntilTheLastIsClosed) {
  Fate fate;
  const int fd = open_file(fate);
  const int copy = dup(fd);
  uiwarp_vk_dup(fd, copy);
  EXPECT_TRUE(is_flagged(copy));
  EXPECT_TRUE(write_to(copy).handled);
  EXPECT_EQ(fate.writes, 1);
  EXPECT_EQ(find_file(fd).get(), find_file(copy).get());

  close_as_hooked(fd);
  EXPECT_EQ(fate.closed, 0);
  EXPECT_TRUE(write_to(copy).handled);
  close_as_hooked(copy);
  EXPECT_EQ(fate.closed, 1);
  EXPECT_EQ(fate.deleted, 1);
}

TEST(FdTable, CopyOverItselfOrACopyChangesNothing) {
  Fate fate;
  const int fd = open_file(fate);
  const int copy = dup(fd);
  uiwarp_vk_dup(fd, copy);
  uiwarp_vk_dup(fd, copy);
  uiwarp_vk_dup(fd, fd);
  EXPECT_EQ(fate.closed, 0);
  close_as_hooked(copy);
  EXPECT_EQ(fate.closed, 0);
  close_as_hooked(fd);
  EXPECT_EQ(fate.closed, 1);
}

TEST(FdTable, CopyOverAnotherDeviceClosesThat) {
  Fate one, other;
  const int fd = open_file(one), over = open_file(other);
  ASSERT_EQ(dup2(fd, over), over);
  uiwarp_vk_dup(fd, over);
  EXPECT_EQ(other.deleted, 1);
  EXPECT_TRUE(write_to(over).handled);
  EXPECT_EQ(one.writes, 1);
  close_as_hooked(fd);
  close_as_hooked(over);
  EXPECT_EQ(one.deleted, 1);
}

TEST(FdTable, AFileThatHasADeviceNumberLooksLikeACharacterDevice) {
  Fate fate;
  const int fd = open_file(fate);
  struct stat status;
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  uiwarp_vk_fix_stat(fd, &status);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(status.st_rdev, makedev(10, 58));

  ASSERT_EQ(stat("/", &status), 0);  // what a reused number would give
  uiwarp_vk_fix_stat(fd, &status);
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  close_as_hooked(fd);
}

// A file whose write() waits until the file is closed.
class BlockingFile final : public TestFile {
 public:
  explicit BlockingFile(Fate& fate) : TestFile(fate, Kind::kUcma) {}
  ssize_t write(int, const void*, size_t, int& error_number) override {
    entered.release();
    closing_.acquire();
    error_number = EBADF;
    return -1;
  }
  void closed() override {
    TestFile::closed();
    closing_.release();
  }
  static inline std::binary_semaphore entered{0};

 private:
  std::binary_semaphore closing_{0};
};

TEST(FdTable, AFileClosedDuringAWriteLivesUntilThatReturns) {
  Fate fate;
  const int fd = open_file(new BlockingFile(fate));
  Written written{};
  std::thread writer([&] { written = write_to(fd); });
  BlockingFile::entered.acquire();
  Fate other;
  close_as_hooked(open_file(other));  // the table is not locked meanwhile
  close_as_hooked(fd);
  writer.join();
  EXPECT_TRUE(written.handled);
  EXPECT_EQ(written.error_number, EBADF);
  EXPECT_EQ(fate.closed, 1);
  EXPECT_EQ(fate.deleted, 1);
}

TEST(FdTable, ManyThreadsOpenWriteCopyAndClose) {
  constexpr int kThreads = 4, kRounds = 200;
  Fate fate;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&fate] {
      for (int round = 0; round < kRounds; ++round) {
        const int fd = open_file(fate);
        const int copy = dup(fd);
        uiwarp_vk_dup(fd, copy);
        EXPECT_TRUE(write_to(copy).handled);
        close_as_hooked(fd);
        close_as_hooked(copy);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fate.writes, kThreads * kRounds);
  EXPECT_EQ(fate.closed, kThreads * kRounds);
  EXPECT_EQ(fate.deleted, kThreads * kRounds);
}

// ---- processes ----

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

// No number of a descriptor is free while it lives. `room`: none below that is left out.
class AllDescriptorsInUse {
 public:
  explicit AllDescriptorsInUse(rlim_t room) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit less = {room, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &less);
    for (int fd; (fd = dup(STDIN_FILENO)) >= 0;) used_.push_back(fd);
  }
  ~AllDescriptorsInUse() {
    for (int fd : used_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_;
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
}  // namespace uiw::vkernel
