// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Children are in fd_table_fork_test.cc.
#include "vkernel/fd_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <semaphore>
#include <thread>
#include <vector>

#include "core/raw_sys.h"
#include "unit/vkernel/fd_table_rig.h"

namespace uiw::vkernel::test {
namespace {

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

}  // namespace
}  // namespace uiw::vkernel::test
