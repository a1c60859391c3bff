// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Opening devices by path, and the command that libibverbs writes to them.
#include "vkernel/uverbs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "device/device.h"
#include "uiwarp/uiwarp-abi.h"
#include "unit/vkernel/memory_end.h"

namespace uiw::vkernel {
namespace {

std::string node() {
  return "/dev/infiniband/uverbs" + std::to_string(device::devices()[0].device->uverbs_minor);
}

struct CreateChannel {
  ib_uverbs_cmd_hdr header{IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sizeof(CreateChannel) / 4, 1};
  ib_uverbs_create_comp_channel body{};
};

class UverbsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(device::devices().empty());
    fd_ = uiwarp_vk_open(node().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd_, 0) << strerror(errno);
  }
  void TearDown() override {
    uiwarp_vk_closing(fd_);
    close(fd_);
  }

  // 0, or the errno the command failed with; -1 when it was not taken at all.
  int command(const void* buffer, size_t size) {
    int handled = -1;
    const ssize_t result = uiwarp_vk_write(fd_, buffer, size, &handled);
    if (handled != 1) return -1;
    if (result < 0) return errno;
    EXPECT_EQ(result, static_cast<ssize_t>(size));
    return 0;
  }

  int fd_ = -1;
};

TEST_F(UverbsTest, IsWhatLibibverbsChecks) {
  struct stat status;
  ASSERT_EQ(fstat(fd_, &status), 0);
  uiwarp_vk_fix_stat(fd_, &status);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(status.st_rdev,
            makedev(0, device::devices()[0].device->uverbs_minor));  // as the tree's "dev" says
  EXPECT_EQ(fcntl(fd_, F_GETFD), FD_CLOEXEC);
  // "No ioctl interface": libibverbs then uses write().
  EXPECT_EQ(ioctl(fd_, _IOWR(0x1b, 1, int), nullptr), -1);
  EXPECT_EQ(errno, ENOTTY);
}

TEST_F(UverbsTest, MakesACompletionChannel) {
  ib_uverbs_create_comp_channel_resp response{~0u};
  CreateChannel create;
  create.body.response = reinterpret_cast<uintptr_t>(&response);
  ASSERT_EQ(command(&create, sizeof create), 0);
  const int channel = static_cast<int>(response.fd);
  EXPECT_EQ(fcntl(channel, F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(channel, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(uiwarp_vk_fd_flags()[channel], 0);  // an ordinary pipe, no hook involved

  pollfd polled = {channel, POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);
  // The provider's side: a description of its own, by way of /proc.
  const std::string path = "/proc/self/fd/" + std::to_string(channel);
  const int provider = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(provider, 0);
  const uint64_t cookie = 0x1122334455667788;
  ASSERT_EQ(write(provider, &cookie, sizeof cookie), 8);
  EXPECT_EQ(poll(&polled, 1, 0), 1);
  uint64_t got = 0;
  EXPECT_EQ(read(channel, &got, sizeof got), 8);
  EXPECT_EQ(got, cookie);
  close(provider);
  close(channel);
}

TEST_F(UverbsTest, RefusesMalformedCommandsAsTheKernelDoes) {
  ib_uverbs_create_comp_channel_resp response{};
  CreateChannel create;
  create.body.response = reinterpret_cast<uintptr_t>(&response);
  for (size_t size = 0; size < sizeof create; ++size) {
    EXPECT_EQ(command(&create, size), EINVAL) << size;
  }
  EXPECT_EQ(command(nullptr, sizeof create), EFAULT);

  CreateChannel wrong = create;
  wrong.header.in_words = 3;
  EXPECT_EQ(command(&wrong, sizeof wrong), EINVAL);
  wrong = create;
  wrong.header.out_words = 0;
  EXPECT_EQ(command(&wrong, sizeof wrong), ENOSPC);
  wrong = create;
  wrong.body.response = 0;
  EXPECT_EQ(command(&wrong, sizeof wrong), EFAULT);
  wrong = create;
  wrong.header.command = IB_USER_VERBS_CMD_OPEN_QP + 1;
  EXPECT_EQ(command(&wrong, sizeof wrong), EINVAL);
  wrong.header.command = IB_USER_VERBS_CMD_CREATE_QP;
  EXPECT_EQ(command(&wrong, sizeof wrong), EOPNOTSUPP);
  wrong.header.command = 0x80000000u | IB_USER_VERBS_EX_CMD_CREATE_CQ;
  EXPECT_EQ(command(&wrong, sizeof wrong), EOPNOTSUPP);
  wrong.header.command = ~0u;
  EXPECT_EQ(command(&wrong, sizeof wrong), EOPNOTSUPP);
}

TEST_F(UverbsTest, MemoryThatIsNotThereIsAnError) {
  ib_uverbs_create_comp_channel_resp response{};
  CreateChannel create;
  create.body.response = reinterpret_cast<uintptr_t>(&response);
  const test::MemoryEnd memory;
  uint8_t* const cut = memory.end() - sizeof create.header;
  memcpy(cut, &create, sizeof create.header);
  EXPECT_EQ(command(reinterpret_cast<void*>(16), sizeof create), EFAULT);
  EXPECT_EQ(command(cut, sizeof create), EFAULT);
  const int lowest = dup(fd_);
  close(lowest);
  for (uint64_t bad : {uint64_t{0}, uint64_t{16}, reinterpret_cast<uint64_t>(memory.end() - 1)}) {
    create.body.response = bad;
    EXPECT_EQ(command(&create, sizeof create), EFAULT);
  }
  const int now = dup(fd_);
  EXPECT_EQ(now, lowest) << "what was made is closed again";
  close(now);
}

// What libibverbs asks of an imported device.
class AllocAsyncEvents {
 public:
  AllocAsyncEvents() {
    header().length = sizeof octets_;
    header().object_id = UVERBS_OBJECT_ASYNC_EVENT;
    header().method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC;
    header().num_attrs = 1;
    header().attrs[0].attr_id = UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE;
  }
  ib_uverbs_ioctl_hdr& header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr*>(octets_); }
  int64_t answer() { return header().attrs[0].data_s64; }
  void* get() { return octets_; }

 private:
  alignas(8) uint8_t octets_[sizeof(ib_uverbs_ioctl_hdr) + sizeof(ib_uverbs_attr)] = {};
};

TEST_F(UverbsTest, AnswersOnceWithTheDescriptorOfEventsThatItWasGiven) {
  AllocAsyncEvents alloc;
  int handled = 0;
  EXPECT_EQ(uiwarp_vk_ioctl(fd_, RDMA_VERBS_IOCTL, alloc.get(), &handled), -1);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ASSERT_EQ(uiwarp_vk_give_async(fd_, 4711), 0);
  EXPECT_EQ(uiwarp_vk_ioctl(fd_, RDMA_VERBS_IOCTL, alloc.get(), &handled), 0);
  EXPECT_EQ(alloc.answer(), 4711);
  EXPECT_EQ(uiwarp_vk_ioctl(fd_, RDMA_VERBS_IOCTL, alloc.get(), &handled), -1);
}

TEST_F(UverbsTest, AnIoctlThatIsNotThereOrNotAsLongAsItSaysIsRefused) {
  ASSERT_EQ(uiwarp_vk_give_async(fd_, 4711), 0);
  const auto control = [&](void* argument) {
    int handled = 0;
    const int result = uiwarp_vk_ioctl(fd_, RDMA_VERBS_IOCTL, argument, &handled);
    EXPECT_EQ(handled, 1);
    return result == 0 ? 0 : errno;
  };
  EXPECT_EQ(control(nullptr), EFAULT);
  EXPECT_EQ(control(reinterpret_cast<void*>(16)), EFAULT);
  AllocAsyncEvents alloc;
  alloc.header().num_attrs = 0xffff;
  EXPECT_EQ(control(alloc.get()), EINVAL);
  alloc.header().num_attrs = 1;
  alloc.header().length -= 1;
  EXPECT_EQ(control(alloc.get()), EINVAL);
  alloc.header().length += 1;
  const test::MemoryEnd memory;
  uint8_t* const cut = memory.end() - sizeof(ib_uverbs_ioctl_hdr);
  memcpy(cut, alloc.get(), sizeof(ib_uverbs_ioctl_hdr));
  EXPECT_EQ(control(cut), EFAULT);
  EXPECT_EQ(control(alloc.get()), 0);
  EXPECT_EQ(alloc.answer(), 4711);
}

TEST_F(UverbsTest, OtherIoctlsGoToTheDescriptor) {
  AllocAsyncEvents other;
  other.header().method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC + 1;
  int handled = 1;
  uiwarp_vk_ioctl(fd_, RDMA_VERBS_IOCTL, other.get(), &handled);
  EXPECT_EQ(handled, 0);
  handled = 1;
  AllocAsyncEvents alloc;
  uiwarp_vk_ioctl(fd_, RDMA_VERBS_IOCTL + 1, alloc.get(), &handled);
  EXPECT_EQ(handled, 0);
}

TEST_F(UverbsTest, CopiesHaveTheNumberOfTheirCommandFile) {
  const uint64_t number = uiwarp_vk_command(fd_);
  EXPECT_NE(number, 0u);
  const int copy = dup(fd_);
  EXPECT_EQ(uiwarp_vk_command(copy), 0u);
  uiwarp_vk_dup(fd_, copy);
  EXPECT_EQ(uiwarp_vk_command(copy), number);
  const int other = uiwarp_vk_open(node().c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_NE(uiwarp_vk_command(other), 0u);
  EXPECT_NE(uiwarp_vk_command(other), number);
  // What is given to one is not another's.
  AllocAsyncEvents alloc;
  int handled = 0;
  ASSERT_EQ(uiwarp_vk_give_async(copy, 4711), 0);
  EXPECT_EQ(uiwarp_vk_ioctl(fd_, RDMA_VERBS_IOCTL, alloc.get(), &handled), -1);
  EXPECT_EQ(uiwarp_vk_ioctl(copy, RDMA_VERBS_IOCTL, alloc.get(), &handled), 0);
  for (int fd : {copy, other}) {
    uiwarp_vk_closing(fd);
    close(fd);
  }
  EXPECT_EQ(uiwarp_vk_command(copy), 0u);
  EXPECT_EQ(uiwarp_vk_command(STDIN_FILENO), 0u);
  EXPECT_EQ(uiwarp_vk_give_async(STDIN_FILENO, 4711), EBADF);
}

TEST_F(UverbsTest, AReusedNumberThatIsDevNullTooIsNotOurs) {
  close(fd_);  // no hook sees this
  ASSERT_EQ(open("/dev/null", O_RDWR | O_CLOEXEC), fd_);
  CreateChannel create;
  EXPECT_EQ(command(&create, sizeof create), -1);
  EXPECT_EQ(uiwarp_vk_fd_flags()[fd_], 0);
}

TEST(OpenByPath, OnlyDeviceNodes) {
  for (const char* path : {"/dev/infiniband", "/dev/infiniband/", "/dev/infiniband/uverbs0",
                           "/dev/infiniband/umad0", "/sys/class/infiniband", "/dev/null"}) {
    EXPECT_EQ(uiwarp_vk_open(path, O_RDWR), -2) << path;
  }
  EXPECT_EQ(uiwarp_vk_open(node().c_str(), O_PATH), -2);
  EXPECT_EQ(uiwarp_vk_open(node().c_str(), O_RDONLY | O_DIRECTORY), -2);
}

TEST(OpenByPath, InAnyWriting) {
  const std::string crooked = "/dev//infiniband/../infiniband/./" + node().substr(16);
  const int fd = uiwarp_vk_open(crooked.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(uiwarp_vk_fd_flags()[fd], 1);
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  EXPECT_EQ(fcntl(fd, F_GETFD), 0);
  uiwarp_vk_closing(fd);
  close(fd);
}

TEST(OpenByPath, RdmaCmIsACharacterDeviceWithNothingToRead) {
  const int fd = uiwarp_vk_open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0) << strerror(errno);
  struct stat status;
  ASSERT_EQ(fstat(fd, &status), 0);
  uiwarp_vk_fix_stat(fd, &status);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  pollfd polled = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);
  uiwarp_vk_closing(fd);
  close(fd);
}

}  // namespace
}  // namespace uiw::vkernel
