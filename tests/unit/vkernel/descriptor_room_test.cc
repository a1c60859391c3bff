// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/descriptor_room.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "uiwarp/uiwarp-abi.h"

namespace uiw::vkernel {
namespace {

// How many descriptors the table of this process has room for now.
int table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("FDSize:")) return std::stoi(line.substr(7));
  }
  return -1;
}

// A child's table is as large as what is open in it.
template <class Check>
int in_child(Check&& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

rlim_t allowed() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

TEST(DescriptorRoom, IsThereOnceADeviceIsOpen) {
  const int wanted = static_cast<int>(std::min<rlim_t>(allowed(), kDescriptorRoom));
  EXPECT_EQ(in_child([&] {
              return table_size() < wanted &&
                     uiwarp_vk_open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) >= 0 &&
                     table_size() >= wanted;
            }),
            0);
}

TEST(DescriptorRoom, IsWhatTheProcessMayHave) {
  EXPECT_EQ(in_child([] {
              const rlimit limit{512, 512};
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
              make_descriptor_room(STDOUT_FILENO);
              return table_size() == 512;
            }),
            0);
}

TEST(DescriptorRoom, LeavesNothingOpen) {
  EXPECT_EQ(in_child([] {
              const int before = dup(STDOUT_FILENO);
              close(before);
              make_descriptor_room(STDOUT_FILENO);
              const int last = static_cast<int>(std::min<rlim_t>(allowed(), kDescriptorRoom)) - 1;
              return dup(STDOUT_FILENO) == before && fcntl(last, F_GETFD) == -1;
            }),
            0);
}

// Of what does not work nobody hears: the table grows when it has to.
TEST(DescriptorRoom, DoesNothingWithoutADescriptor) {
  EXPECT_EQ(in_child([] {
              const int before = table_size();
              make_descriptor_room(-1);
              return table_size() == before;
            }),
            0);
}

}  // namespace
}  // namespace uiw::vkernel
