// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/descriptor_room.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "support/descriptor_limit.h"
#include "support/in_child.h"
#include "uiwarp/uiwarp-abi.h"

namespace uiw::vkernel {
namespace {

using uiw::test::DescriptorLimit;
using uiw::test::in_child;

// How many descriptors the table of this process has room for now.
int table_size() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("FDSize:")) return std::stoi(line.substr(7));
  }
  return -1;
}

// The last descriptor that there is room for.
int last_descriptor() {
  return static_cast<int>(std::min<rlim_t>(DescriptorLimit::allowed(), kDescriptorRoom)) - 1;
}

// In children, whose table is at first as large as what is open in them.

TEST(DescriptorRoom, IsThereOnceADeviceIsOpen) {
  const int last = last_descriptor();
  in_child([&] {
    if (table_size() > last) return 1;
    if (uiwarp_vk_open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC) < 0) return 2;
    return table_size() > last ? 0 : 3;
  });
}

TEST(DescriptorRoom, IsWhatTheProcessMayHave) {
  const DescriptorLimit few(512);
  in_child([] {
    make_descriptor_room(STDOUT_FILENO);
    return table_size() == 512 ? 0 : 1;
  });
}

TEST(DescriptorRoom, LeavesNothingOpen) {
  in_child([] {
    const int before = dup(STDOUT_FILENO);
    close(before);
    make_descriptor_room(STDOUT_FILENO);
    if (dup(STDOUT_FILENO) != before) return 1;
    return fcntl(last_descriptor(), F_GETFD) == -1 ? 0 : 2;
  });
}

// Of what does not work nobody hears: the table grows when it has to.
TEST(DescriptorRoom, DoesNothingWithoutADescriptor) {
  in_child([] {
    const int before = table_size();
    make_descriptor_room(-1);
    return table_size() == before ? 0 : 1;
  });
}

}  // namespace
}  // namespace uiw::vkernel
