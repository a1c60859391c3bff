// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// socket() and what sends, on NETLINK_RDMA and on everything else.
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

namespace {

const nlmsghdr kRequest = {sizeof(nlmsghdr), RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
                           NLM_F_REQUEST | NLM_F_DUMP, 42, 0};

std::string receive(int fd) {
  char buffer[8192];
  const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
  return got < 0 ? std::string() : std::string(buffer, static_cast<size_t>(got));
}

msghdr message_of(iovec* parts, size_t count) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return message;
}

TEST(SocketHooks, EachCallThatSendsIsARequest) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  ASSERT_GE(fd, 0) << strerror(errno);
  auto* bytes = reinterpret_cast<char*>(const_cast<nlmsghdr*>(&kRequest));
  iovec parts[] = {{bytes, 5}, {bytes + 5, sizeof kRequest - 5}};
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const std::pair<const char*, std::function<ssize_t()>> calls[] = {
      {"send", [&] { return send(fd, &kRequest, sizeof kRequest, 0); }},
      {"sendto",
       [&] {
         return sendto(fd, &kRequest, sizeof kRequest, 0, reinterpret_cast<sockaddr*>(&kernel),
                       sizeof kernel);
       }},
      {"sendmsg",
       [&] {
         msghdr message = message_of(parts, 2);
         return sendmsg(fd, &message, 0);
       }},
      {"write", [&] { return write(fd, &kRequest, sizeof kRequest); }},
      {"writev", [&] { return writev(fd, parts, 2); }},
  };
  for (const auto& [name, call] : calls) {
    errno = 4711;
    EXPECT_EQ(call(), static_cast<ssize_t>(sizeof kRequest)) << name;
    EXPECT_EQ(errno, 4711) << name;
    EXPECT_NE(receive(fd).find("uiw_lo"), std::string::npos) << name;
    EXPECT_TRUE(receive(fd).empty()) << name;
  }
  close(fd);
  EXPECT_EQ(send(fd, &kRequest, sizeof kRequest, 0), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(SocketHooks, TooLongARequestIsRefused) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  ASSERT_GE(fd, 0);
  char large[5000] = "";
  std::memcpy(large, &kRequest, sizeof kRequest);
  iovec part{large, sizeof large};
  msghdr message = message_of(&part, 1);
  EXPECT_EQ(sendmsg(fd, &message, 0), -1);
  EXPECT_EQ(errno, EMSGSIZE);
  EXPECT_TRUE(receive(fd).empty());
  close(fd);
}

TEST(SocketHooks, MemoryThatIsNotThereIsAnError) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  ASSERT_GE(fd, 0);
  void* volatile wild = reinterpret_cast<void*>(16);  // or the compiler sees it
  void* const bad = wild;
  iovec part{bad, 24};
  msghdr message = message_of(&part, 1), nowhere = message_of(static_cast<iovec*>(bad), 1);
  const std::pair<const char*, std::function<ssize_t()>> calls[] = {
      {"send", [&] { return send(fd, bad, 24, 0); }},
      {"address",
       [&] {
         return sendto(fd, &kRequest, sizeof kRequest, 0, static_cast<sockaddr*>(bad),
                       sizeof(sockaddr_nl));
       }},
      {"parts", [&] { return sendmsg(fd, &message, 0); }},
      {"list of parts", [&] { return sendmsg(fd, &nowhere, 0); }},
      {"message", [&] { return sendmsg(fd, static_cast<msghdr*>(bad), 0); }},
  };
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(call(), -1) << name;
    EXPECT_EQ(errno, EFAULT) << name;
  }
  EXPECT_TRUE(receive(fd).empty());
  EXPECT_EQ(send(fd, &kRequest, sizeof kRequest, 0), static_cast<ssize_t>(sizeof kRequest));
  close(fd);
}

TEST(SocketHooks, CopiesAreTheSameSocket) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
  ASSERT_GE(fd, 0);
  const int copy = dup(fd);
  close(fd);
  EXPECT_EQ(send(copy, &kRequest, sizeof kRequest, 0), static_cast<ssize_t>(sizeof kRequest));
  EXPECT_NE(receive(copy).find("uiw_lo"), std::string::npos);
  close(copy);
}

TEST(SocketHooks, OtherSocketsAreLeftAlone) {
  const int route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  EXPECT_GE(route, 0);
  close(route);
  const int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_GE(stream, 0);
  close(stream);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  char text[] = "abc";
  iovec parts[] = {{text, 1}, {text + 1, 2}};
  msghdr message = message_of(parts, 2);
  errno = 4711;
  EXPECT_EQ(send(ends[0], "abc", 3, 0), 3);
  EXPECT_EQ(sendto(ends[0], "abc", 3, 0, nullptr, 0), 3);
  EXPECT_EQ(sendmsg(ends[0], &message, 0), 3);
  EXPECT_EQ(errno, 4711);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(receive(ends[1]), "abc");
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(send(-1, "abc", 3, 0), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
