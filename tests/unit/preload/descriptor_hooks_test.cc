// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// write, close, dup and their kin on a virtual device and on everything else; socket().
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

namespace {

int open_device() {
  const int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
  EXPECT_GE(fd, 0);
  return fd;
}

// A write to the device is a command, and four octets are none; to a pipe or file they are data.
bool is_device(int fd) {
  errno = 0;
  return write(fd, "none", 4) == -1 && errno == EINVAL;
}

TEST(WriteHook, CommandsGoToTheDevice) {
  const int fd = open_device();
  EXPECT_TRUE(is_device(fd));
  // Nothing of it arrived in the pipe that the descriptor really is.
  pollfd polled = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);

  char one[] = "no", two[] = "ne";
  iovec parts[] = {{one, 2}, {two, 2}};
  EXPECT_EQ(writev(fd, parts, 2), -1);
  EXPECT_EQ(errno, EINVAL);
  static char large[5000];
  iovec too_large[] = {{large, sizeof large}};
  EXPECT_EQ(writev(fd, too_large, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(poll(&polled, 1, 0), 0);
  close(fd);
}

TEST(WriteHook, ForeignDescriptorsAreLeftAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  errno = 4711;
  EXPECT_EQ(write(ends[1], "abc", 3), 3);
  char one[] = "de", two[] = "f";
  iovec parts[] = {{one, 2}, {two, 1}};
  EXPECT_EQ(writev(ends[1], parts, 2), 3);
  EXPECT_EQ(errno, 4711);
  char text[8] = "";
  EXPECT_EQ(read(ends[0], text, sizeof text), 6);
  EXPECT_STREQ(text, "abcdef");
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(write(ends[1], "abc", 3), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(write(-1, "abc", 3), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(CloseHook, TheNumberIsFreeAfterwards) {
  const int fd = open_device();
  EXPECT_EQ(close(fd), 0);
  EXPECT_EQ(close(fd), -1);
  EXPECT_EQ(errno, EBADF);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int reused = dup2(ends[1], fd);
  EXPECT_FALSE(is_device(reused));
  close(ends[0]);
  if (ends[1] != fd) close(ends[1]);
  close(fd);
}

TEST(DupHooks, TheCopyIsTheDeviceToo) {
  const std::pair<const char*, std::function<int(int)>> calls[] = {
      {"dup", [](int fd) { return dup(fd); }},
      {"dup2", [](int fd) { return dup2(fd, 200); }},
      {"dup3", [](int fd) { return dup3(fd, 200, O_CLOEXEC); }},
      {"fcntl", [](int fd) { return fcntl(fd, F_DUPFD, 100); }},
      {"fcntl, close on exec", [](int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 100); }},
      {"fcntl64", [](int fd) { return fcntl64(fd, F_DUPFD, 100); }},
  };
  for (const auto& [name, call] : calls) {
    const int fd = open_device();
    const int copy = call(fd);
    ASSERT_GE(copy, 0) << name;
    EXPECT_NE(copy, fd) << name;
    EXPECT_TRUE(is_device(copy)) << name;
    close(fd);
    EXPECT_TRUE(is_device(copy)) << name;
    close(copy);
  }
}

TEST(DupHooks, WhatIsCopiedOverADeviceIsNotTheDevice) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (bool by_dup3 : {false, true}) {
    const int fd = open_device();
    ASSERT_EQ(by_dup3 ? dup3(ends[1], fd, 0) : dup2(ends[1], fd), fd);
    EXPECT_FALSE(is_device(fd));
    close(fd);
  }
  const int fd = open_device();
  EXPECT_EQ(dup2(fd, fd), fd);  // changes nothing
  EXPECT_TRUE(is_device(fd));
  EXPECT_EQ(dup2(1'000'000, fd), -1);  // neither does a failure
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(is_device(fd));
  close(fd);
  close(ends[0]);
  close(ends[1]);
}

TEST(FcntlHook, OtherCommandsPass) {
  const int fd = open_device();
  for (auto call : {+[](int f, int c, int a) { return fcntl(f, c, a); },
                    +[](int f, int c, int a) { return fcntl64(f, c, a); }}) {
    EXPECT_EQ(call(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
    EXPECT_EQ(call(fd, F_GETFL, 0) & O_NONBLOCK, O_NONBLOCK);
    EXPECT_EQ(call(fd, F_SETFL, O_RDWR), 0);
    EXPECT_EQ(call(fd, F_GETFL, 0) & O_NONBLOCK, 0);
    EXPECT_EQ(call(fd, F_GETFD, 0), FD_CLOEXEC);
  }
  flock lock{};
  lock.l_type = F_WRLCK;
  FILE* file = tmpfile();
  EXPECT_EQ(fcntl(fileno(file), F_GETLK, &lock), 0);  // a pointer argument
  EXPECT_EQ(lock.l_type, F_UNLCK);
  fclose(file);
  EXPECT_TRUE(is_device(fd));
  close(fd);
}

// In a child, since everything from `first` on is closed.
template <class Close>
void expect_closed(const char* name, Close call) {
  const int device = open_device();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int own = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    const int fd = own >= 0 ? own : device;  // a child of a process with RDMA may get none
    call(fd);
    if (fcntl(fd, F_GETFD) != -1) _exit(1);
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], fd) != fd) _exit(2);
    _exit(is_device(fd) ? 3 : 0);
  }
  int status;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << name;
  EXPECT_EQ(WEXITSTATUS(status), 0) << name;
  EXPECT_TRUE(is_device(device)) << name;
  close(device);
}

TEST(CloseRangeHooks, CloseDevicesToo) {
  expect_closed("close_range", [](int fd) { close_range(fd, ~0u, 0); });
  expect_closed("closefrom", [](int fd) { closefrom(fd); });
}

TEST(CloseRangeHooks, CloseOnExecClosesNothingYet) {
  const int fd = open_device();
  const auto number = static_cast<unsigned>(fd);
  EXPECT_EQ(close_range(number, number, CLOSE_RANGE_CLOEXEC), 0);
  EXPECT_TRUE(is_device(fd));
  EXPECT_EQ(close_range(5, 4, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  close(fd);
}

TEST(StaleDescriptor, ClosedByARawSystemCallAndReused) {
  const int fd = open_device();
  syscall(SYS_close, fd);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  if (ends[0] != fd && ends[1] != fd) {
    ASSERT_EQ(syscall(SYS_dup3, ends[1], fd, 0), fd);
  }
  const int writable = ends[0] == fd ? ends[1] : fd;
  EXPECT_FALSE(is_device(writable));
  close(ends[0]);
  close(ends[1]);
  close(fd);
}

TEST(SocketHook, RdmaNetlinkIsRefusedAndNothingElse) {
  EXPECT_EQ(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
  const int route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  EXPECT_GE(route, 0);
  close(route);
  const int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_GE(stream, 0);
  close(stream);
  const int datagram = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  EXPECT_GE(datagram, 0);
  close(datagram);
}

}  // namespace
