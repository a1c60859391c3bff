// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/raw_sys.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/descriptors.h"
#include "support/in_child.h"

namespace uiw::core::sys {
namespace {

// A folder of its own for each test, gone with it.
class RawSys : public testing::Test {
 protected:
  void SetUp() override {
    const char* base = std::getenv("TMPDIR");
    folder_ = std::string(base != nullptr ? base : "/tmp") + "/uiwarp-raw-sys-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { EXPECT_EQ(rmdir(folder_.c_str()), 0); }
  std::string path(const char* name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(RawSys, FilesAndFolders) {
  std::string file = path("file");
  int fd = sys::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(sys::write(fd, "abc", 3), 3);
  struct stat info;
  EXPECT_EQ(sys::fstat(fd, &info), 0);
  EXPECT_EQ(info.st_size, 3);
  EXPECT_TRUE(S_ISREG(info.st_mode));
  EXPECT_EQ(sys::fcntl(fd, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(sys::close(fd), 0);
  fd = sys::open(file.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  char buffer[8];
  EXPECT_EQ(sys::read(fd, buffer, sizeof buffer), 3);
  EXPECT_EQ(std::memcmp(buffer, "abc", 3), 0);
  EXPECT_EQ(sys::close(fd), 0);
  EXPECT_EQ(unlink(file.c_str()), 0);
}

TEST_F(RawSys, ErrorsAreReturnedAndErrnoLeftAlone) {
  errno = 4711;
  EXPECT_EQ(sys::open(path("missing").c_str(), O_RDONLY), -ENOENT);
  EXPECT_EQ(sys::close(-1), -EBADF);
  EXPECT_EQ(sys::read(-1, nullptr, 0), -EBADF);
  EXPECT_EQ(sys::write(-1, nullptr, 0), -EBADF);
  EXPECT_EQ(sys::socket(-1, 0, 0), -EAFNOSUPPORT);
  EXPECT_EQ(sys::ioctl(-1, FIONREAD, nullptr), -EBADF);
  EXPECT_EQ(errno, 4711);
}

TEST_F(RawSys, PipesAndEvents) {
  int fds[2];
  ASSERT_EQ(sys::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
  char octet;
  EXPECT_EQ(sys::read(fds[0], &octet, 1), -EAGAIN);
  EXPECT_EQ(sys::write(fds[1], "x", 1), 1);
  int pending = 0;
  EXPECT_EQ(sys::ioctl(fds[0], FIONREAD, &pending), 0);
  EXPECT_EQ(pending, 1);
  EXPECT_EQ(sys::close(fds[0]), 0);
  EXPECT_EQ(sys::close(fds[1]), 0);

  int event = sys::eventfd(5, EFD_NONBLOCK);
  ASSERT_GE(event, 0);
  uint64_t value = 0;
  EXPECT_EQ(sys::read(event, &value, sizeof value), 8);
  EXPECT_EQ(value, 5u);
  EXPECT_EQ(sys::close(event), 0);
}

TEST_F(RawSys, Sockets) {
  int listener = sys::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(listener, 0);
  int one = 1;
  EXPECT_EQ(sys::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(sys::getsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &value, &size), 0);
  EXPECT_EQ(value, 1);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(sys::bind(listener, generic, sizeof address), 0);
  ASSERT_EQ(sys::listen(listener, 1), 0);
  size = sizeof address;
  ASSERT_EQ(sys::getsockname(listener, generic, &size), 0);
  EXPECT_NE(address.sin_port, 0);

  int client = sys::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(sys::connect(client, generic, sizeof address), 0);
  sockaddr_in peer{};
  size = sizeof peer;
  int server = sys::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
  ASSERT_GE(server, 0);
  sockaddr_in same{};
  size = sizeof same;
  EXPECT_EQ(sys::getpeername(server, reinterpret_cast<sockaddr*>(&same), &size), 0);
  EXPECT_EQ(same.sin_port, peer.sin_port);

  char out[] = "hello";
  iovec pieces[2] = {{out, 2}, {out + 2, 3}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  EXPECT_EQ(sys::sendmsg(client, &message, MSG_NOSIGNAL), 5);
  EXPECT_EQ(sys::shutdown(client, SHUT_WR), 0);
  char in[8] = {};
  iovec whole = {in, sizeof in};
  message.msg_iov = &whole;
  message.msg_iovlen = 1;
  EXPECT_EQ(sys::recvmsg(server, &message, MSG_WAITALL), 5);
  EXPECT_STREQ(in, "hello");
  EXPECT_EQ(sys::recvmsg(server, &message, 0), 0);
  for (int fd : {listener, client, server}) EXPECT_EQ(sys::close(fd), 0);
}

bool is_open(int fd) {
  return sys::fcntl(fd, F_GETFD) >= 0;
}

// As in a program that was started with 2>&-, and with less.
void close_standard() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
}

TEST_F(RawSys, WhatIsOpenedIsNeverAStandardDescriptor) {
  test::in_child([] {
    close_standard();
    const int made[] = {sys::open("/dev/null", O_RDWR | O_CLOEXEC),
                        sys::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                        sys::eventfd(0, EFD_CLOEXEC), sys::epoll_create1(EPOLL_CLOEXEC),
                        sys::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)};
    for (int fd : made) {
      if (fd <= STDERR_FILENO) return 1;
      if (sys::fcntl(fd, F_GETFD) != FD_CLOEXEC) return 2;
      if (descriptor_use(fd) != DescriptorUse::kOwn) return 3;
    }
    const int inherited = sys::open("/dev/null", O_RDWR);
    if (inherited <= STDERR_FILENO || sys::fcntl(inherited, F_GETFD) != 0) return 4;
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      if (is_open(fd) || descriptor_use(fd) != DescriptorUse::kForeign) return 5;
    return 0;
  });
}

TEST_F(RawSys, NeitherIsAConnection) {
  test::in_child([] {
    const int listener = sys::socket(AF_INET, SOCK_STREAM, 0);
    const int client = sys::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (sys::bind(listener, generic, size) != 0 || sys::listen(listener, 1) != 0) return 1;
    if (sys::getsockname(listener, generic, &size) != 0) return 2;
    if (sys::connect(client, generic, size) != 0) return 3;
    close_standard();
    const int server = sys::accept4(listener, generic, &size, SOCK_CLOEXEC);
    return server > STDERR_FILENO && !is_open(STDIN_FILENO) ? 0 : 4;
  });
}

TEST_F(RawSys, NorIsAnEndOfAPipe) {
  for (int first_closed : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    test::in_child([&] {
      for (int fd = first_closed; fd <= STDERR_FILENO; ++fd) ::close(fd);
      int ends[2];
      if (sys::pipe2(ends, O_CLOEXEC) != 0) return 1;
      if (ends[0] <= STDERR_FILENO || ends[1] <= STDERR_FILENO) return 2;
      char octet = 0;
      if (sys::write(ends[1], "x", 1) != 1 || sys::read(ends[0], &octet, 1) != 1) return 3;
      return octet == 'x' && !is_open(STDERR_FILENO) ? 0 : 4;
    });
  }
}

// There is none where the limit leaves no other.
TEST_F(RawSys, WithoutAnotherDescriptorNothingIsOpened) {
  for (rlim_t limit : {2, 3}) {
    test::in_child([&] {
      const rlimit few{limit, limit};
      setrlimit(RLIMIT_NOFILE, &few);
      close_standard();
      if (sys::eventfd(0, 0) != -EMFILE) return 1;
      int ends[2];
      if (sys::pipe2(ends, 0) != -EMFILE) return 2;
      return is_open(STDIN_FILENO) || is_open(STDOUT_FILENO) ? 3 : 0;
    });
  }
}

TEST_F(RawSys, ThreadId) {
  EXPECT_EQ(sys::gettid(), ::gettid());
}

}  // namespace
}  // namespace uiw::core::sys
