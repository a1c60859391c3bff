// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What the kernel tells of interfaces, in a network namespace that the test makes for itself.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/gid.h"
#include "device/interface.h"

namespace uiw::device {
namespace {

in6_addr v4(const char* text) {
  in_addr out;
  EXPECT_EQ(inet_pton(AF_INET, text, &out), 1) << text;
  return core::mapped(out);
}

bool has(const Interface* interface, const char* address) {
  const in6_addr wanted = v4(address);
  return interface != nullptr && std::ranges::any_of(interface->addresses, [&](const in6_addr& a) {
           return std::memcmp(&a, &wanted, sizeof a) == 0;
         });
}

// The thread goes into the namespace for the length of a test: so do the sockets it makes and the
// programs it starts.
class Watch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make a network namespace";
    if (std::system("ip -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs ip (package iproute2)";
    home_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "cannot make network namespaces here";
    ip("link set lo up");
    int error = 0;
    watch = InterfaceWatch::start(error);
    ASSERT_NE(watch, nullptr) << strerrordesc_np(error);
  }

  void TearDown() override {
    watch.reset();
    if (home_ < 0) return;
    setns(home_, CLONE_NEWNET);
    close(home_);
  }

  static void ip(const std::string& command) {
    EXPECT_EQ(std::system(("ip " + command).c_str()), 0) << command;
  }
  // The kernel has told all before `ip` returned.
  const Interface* read(const char* name) {
    interfaces.clear();
    EXPECT_EQ(watch->read(interfaces), 0);
    auto found = std::ranges::find(interfaces, name, &Interface::name);
    return found == interfaces.end() ? nullptr : &*found;
  }
  bool readable() const {
    pollfd p{watch->fd(), POLLIN, 0};
    return poll(&p, 1, 0) == 1;
  }

  std::unique_ptr<InterfaceWatch> watch;
  std::vector<Interface> interfaces;

 private:
  int home_ = -1;
};

TEST_F(Watch, KnowsWhatWasThereBefore) {
  const Interface* lo = read("lo");
  ASSERT_NE(lo, nullptr);
  EXPECT_TRUE(lo->up && lo->carrier);
  EXPECT_TRUE(has(lo, "127.0.0.1"));
}

TEST_F(Watch, HearsOfInterfacesAndAddresses) {
  read("lo");
  EXPECT_FALSE(readable());
  ip("link add veth0 type veth peer name veth1");
  EXPECT_TRUE(readable());
  const Interface* veth = read("veth0");
  EXPECT_FALSE(readable());
  ASSERT_NE(veth, nullptr);
  EXPECT_FALSE(veth->up);
  EXPECT_TRUE(veth->has_mac);
  const unsigned ifindex = veth->ifindex;

  ip("address add 192.0.2.7/24 dev veth0");
  ip("link set veth0 mtu 1400 up");
  veth = read("veth0");
  ASSERT_NE(veth, nullptr);
  EXPECT_TRUE(veth->up);
  EXPECT_FALSE(veth->carrier);  // its other end is down
  EXPECT_EQ(veth->mtu, 1400u);
  EXPECT_TRUE(has(veth, "192.0.2.7"));

  ip("address add 192.0.2.8/24 dev veth0");
  ip("address del 192.0.2.7/24 dev veth0");
  ip("link set veth0 down");
  ip("link set veth0 name renamed0");
  EXPECT_EQ(read("veth0"), nullptr);
  veth = read("renamed0");
  ASSERT_NE(veth, nullptr);
  EXPECT_EQ(veth->ifindex, ifindex);
  EXPECT_FALSE(veth->up);
  EXPECT_FALSE(has(veth, "192.0.2.7"));

  ip("link del renamed0");
  EXPECT_EQ(read("renamed0"), nullptr);
}

// What a bridge says of its ports must not look like other interfaces, nor like the end of one.
TEST_F(Watch, ABridgeIsOneInterfaceAndSoIsItsPort) {
  ip("link add br0 type bridge");
  ip("link add veth0 type veth peer name veth1");
  ip("address add 192.0.2.7/24 dev veth0");
  ip("link set veth0 up");
  for (const char* command : {"link set veth0 master br0", "link set veth0 nomaster"}) {
    ip(command);
    EXPECT_TRUE(has(read("veth0"), "192.0.2.7")) << command;
    EXPECT_EQ(std::ranges::count(interfaces, "veth0", &Interface::name), 1) << command;
  }
}

// libnl has a bridge with the family of what it says of its ports.
TEST_F(Watch, ABridgeIsThereWithItsAddress) {
  ip("link add br0 type bridge");
  ip("address add 192.0.2.1/24 dev br0");
  ip("link add veth0 type veth peer name veth1");
  ip("link set veth1 up");
  for (const char* command :
       {"link set br0 up", "link set veth0 master br0", "link set veth0 up",
        "link set br0 type bridge ageing_time 500", "link set veth0 nomaster"}) {
    ip(command);
    const Interface* bridge = read("br0");
    ASSERT_TRUE(has(bridge, "192.0.2.1")) << command;
    EXPECT_TRUE(bridge->up && bridge->is_bridge) << command;
    EXPECT_TRUE(bridge->has_mac) << command;
    EXPECT_EQ(std::ranges::count(interfaces, "br0", &Interface::name), 1) << command;
    // Who begins to look now sees the same.
    std::vector<Interface> now;
    EXPECT_EQ(read_interfaces(now), 0);
    EXPECT_EQ(std::ranges::count(now, "br0", &Interface::name), 1) << command;
    EXPECT_FALSE(read("veth0")->is_bridge) << command;
  }
  ip("link set br0 down");
  EXPECT_FALSE(read("br0")->up);
  ip("link del br0");
  EXPECT_EQ(read("br0"), nullptr);
}

TEST_F(Watch, WhatDidNotFitIsAskedFor) {
  const int least = 1;  // the kernel makes it about 2 KiB
  ASSERT_EQ(setsockopt(watch->fd(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least), 0);
  ip("link add veth0 type veth peer name veth1");
  ip("address add 192.0.2.1/24 dev veth0");
  ip("address add 192.0.2.2/24 dev veth0");
  ip("address add 192.0.2.3/32 dev veth0");
  // By now nothing fits any more.
  ip("address del 192.0.2.3/32 dev veth0");
  ip("link add veth2 type veth peer name veth3");
  EXPECT_TRUE(readable());
  EXPECT_TRUE(has(read("veth0"), "192.0.2.2"));
  EXPECT_FALSE(has(read("veth0"), "192.0.2.3"));
  EXPECT_NE(read("veth3"), nullptr);
  // And it goes on as before.
  ip("address add 192.0.2.9/24 dev veth3");
  EXPECT_TRUE(has(read("veth3"), "192.0.2.9"));
}

}  // namespace
}  // namespace uiw::device
