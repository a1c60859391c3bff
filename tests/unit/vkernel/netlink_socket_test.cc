// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The socket behind NETLINK_RDMA: what arrives at it, and what does not.
#include "vkernel/netlink_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/raw_sys.h"
#include "device/device.h"
#include "support/in_child.h"
#include "uiwarp/uiwarp-abi.h"

namespace uiw::vkernel {
namespace {

struct Request {
  nlmsghdr header{sizeof(Request), RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
                  NLM_F_REQUEST | NLM_F_DUMP, 42, 0};
};

sockaddr_nl netlink_address(uint32_t port = 0) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_pid = port;
  return address;
}

sockaddr_nl name_of(int fd) {
  sockaddr_nl name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  return name;
}

// 0, or the errno of a request that was sent to `to`, or to nobody by name; -1: it was not taken.
int send_request(int fd, const sockaddr_nl* to = nullptr, socklen_t to_size = sizeof(sockaddr_nl)) {
  const Request request;
  int handled = -1;
  const ssize_t result =
      uiwarp_vk_send(fd, &request, sizeof request, reinterpret_cast<const sockaddr*>(to),
                     to == nullptr ? 0 : to_size, &handled);
  if (handled != 1) return -1;
  if (result < 0) return errno;
  EXPECT_EQ(result, static_cast<ssize_t>(sizeof request));
  return 0;
}

// What one recvmsg() gives, empty when nothing is there; `from` who sent it.
std::string receive(int fd, sockaddr_nl* from = nullptr) {
  char buffer[8192];
  sockaddr_nl address{};
  socklen_t size = sizeof address;
  const ssize_t got = recvfrom(fd, buffer, sizeof buffer, MSG_DONTWAIT,
                               reinterpret_cast<sockaddr*>(&address), &size);
  if (from != nullptr) *from = address;
  return got < 0 ? std::string() : std::string(buffer, static_cast<size_t>(got));
}

bool names_a_device(const std::string& answer) {
  return answer.find("uiw_") != std::string::npos;
}

class NetlinkSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(device::devices().empty());
    fd_ = uiwarp_vk_socket(SOCK_RAW | SOCK_CLOEXEC);
    ASSERT_GE(fd_, 0) << strerror(errno);
  }
  void TearDown() override { close_one(fd_); }
  static void close_one(int fd) {
    uiwarp_vk_closing(fd);
    close(fd);
  }

  int fd_ = -1;
};

TEST_F(NetlinkSocketTest, AnswersComeFromTheKernelsOwnQueue) {
  EXPECT_NE(fcntl(fd_, F_GETFD) & FD_CLOEXEC, 0);
  sockaddr_nl any = netlink_address();
  ASSERT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  const sockaddr_nl name = name_of(fd_);
  EXPECT_NE(name.nl_pid, 0u);
  EXPECT_EQ(send_request(fd_), 0);
  pollfd polled{fd_, POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 1);
  sockaddr_nl from{};
  const std::string answer = receive(fd_, &from);
  EXPECT_TRUE(names_a_device(answer));
  EXPECT_EQ(from.nl_family, AF_NETLINK);
  nlmsghdr header;
  ASSERT_GE(answer.size(), sizeof header);
  std::memcpy(&header, answer.data(), sizeof header);
  EXPECT_EQ(header.nlmsg_seq, 42u);
  EXPECT_EQ(header.nlmsg_pid, name.nl_pid);
}

TEST_F(NetlinkSocketTest, NeedsNoBind) {
  EXPECT_EQ(send_request(fd_), 0);
  EXPECT_NE(name_of(fd_).nl_pid, 0u);
  EXPECT_TRUE(names_a_device(receive(fd_)));
}

TEST_F(NetlinkSocketTest, RequestsGoToTheKernelOnly) {
  const sockaddr_nl kernel = netlink_address();
  EXPECT_EQ(send_request(fd_, &kernel), 0);
  EXPECT_EQ(send_request(fd_, &kernel, sizeof kernel - 1), EINVAL);
  const sockaddr_nl somebody = netlink_address(1);
  EXPECT_EQ(send_request(fd_, &somebody), EPERM);
  sockaddr_nl group = netlink_address();
  group.nl_groups = 1;
  EXPECT_EQ(send_request(fd_, &group), EPERM);
  sockaddr_nl other = netlink_address();
  other.nl_family = AF_INET;
  EXPECT_EQ(send_request(fd_, &other), EINVAL);
}

// Else any user of the host could tell a program which devices there are.
TEST_F(NetlinkSocketTest, NobodyElseIsHeard) {
  const int stranger = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
  ASSERT_GE(stranger, 0);
  sockaddr_nl any = netlink_address();
  ASSERT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
  const sockaddr_nl ours = name_of(fd_);
  const auto intrude = [&] {
    return sendto(stranger, "false", 5, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&ours),
                  sizeof ours);
  };
  EXPECT_EQ(intrude(), 5);  // before the first request, which drops it
  EXPECT_EQ(send_request(fd_), 0);
  EXPECT_EQ(intrude(), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_TRUE(names_a_device(receive(fd_)));
  EXPECT_TRUE(receive(fd_).empty());
  close(stranger);
}

TEST_F(NetlinkSocketTest, CapAckIsHeeded) {
  struct {
    Request request;
    nlattr index{8, RDMA_NLDEV_ATTR_DEV_INDEX};
    uint32_t none = 99999;
  } wrong;
  wrong.request.header.nlmsg_len = sizeof wrong;
  wrong.request.header.nlmsg_flags = NLM_F_REQUEST;
  const auto size_of_error = [&] {
    int handled;
    EXPECT_EQ(uiwarp_vk_write(fd_, &wrong, sizeof wrong, &handled),
              static_cast<ssize_t>(sizeof wrong));
    return receive(fd_).size();
  };
  const int one = 1;
  EXPECT_EQ(size_of_error(), sizeof(nlmsghdr) + sizeof(nlmsgerr) + 8);
  ASSERT_EQ(setsockopt(fd_, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof one), 0);
  EXPECT_EQ(size_of_error(), sizeof(nlmsghdr) + sizeof(nlmsgerr));
}

TEST_F(NetlinkSocketTest, WhoNeverReadsGetsNoBuffersAndNobodyWaits) {
  int error = 0;
  for (int i = 0; i < 100'000 && error == 0; ++i) error = send_request(fd_);
  EXPECT_EQ(error, ENOBUFS);
  while (!receive(fd_).empty()) {
  }
  EXPECT_EQ(send_request(fd_), 0);
}

TEST_F(NetlinkSocketTest, CopiesAreTheSameSocket) {
  const int copy = dup(fd_);
  uiwarp_vk_dup(fd_, copy);
  close_one(fd_);
  EXPECT_EQ(send_request(copy), 0);
  EXPECT_TRUE(names_a_device(receive(copy)));
  fd_ = copy;
}

TEST_F(NetlinkSocketTest, OtherDescriptorsAreNotTaken) {
  const int device = uiwarp_vk_open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
  ASSERT_GE(device, 0);
  EXPECT_EQ(send_request(device), -1);
  close_one(device);
  // A number that was closed without our seeing it.
  ASSERT_EQ(core::sys::fcntl(fd_, F_GETFD), FD_CLOEXEC);
  const int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  dup2(other, fd_);
  close(other);
  EXPECT_EQ(send_request(fd_), -1);
}

TEST_F(NetlinkSocketTest, WorksInAFork) {
  test::in_child([&] {
    if (send_request(fd_) != 0) return 1;
    if (!names_a_device(receive(fd_))) return 2;
    const int own = uiwarp_vk_socket(SOCK_RAW | SOCK_CLOEXEC);
    if (own < 0 || send_request(own) != 0) return 3;
    return names_a_device(receive(own)) ? 0 : 4;
  });
  EXPECT_EQ(send_request(fd_), 0);
  EXPECT_TRUE(names_a_device(receive(fd_)));
}

TEST(NetlinkSocket, WrongTypesAreTheKernelsToRefuse) {
  EXPECT_EQ(uiwarp_vk_socket(SOCK_STREAM), -1);
  EXPECT_EQ(errno, ESOCKTNOSUPPORT);
}

}  // namespace
}  // namespace uiw::vkernel
