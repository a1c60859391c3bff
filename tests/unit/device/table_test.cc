// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/interface.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <cstring>
#include <set>

namespace uiw::device {
namespace {

in6_addr v6(const char* text) {
  in6_addr out;
  EXPECT_EQ(inet_pton(AF_INET6, text, &out), 1) << text;
  return out;
}

in6_addr v4(const char* text) {
  in_addr out;
  EXPECT_EQ(inet_pton(AF_INET, text, &out), 1) << text;
  return mapped(out);
}

std::string text(const in6_addr& address) {
  char out[INET6_ADDRSTRLEN];
  return inet_ntop(AF_INET6, &address, out, sizeof out);
}

Interface ethernet(const char* name, unsigned ifindex, uint8_t last_octet) {
  Interface interface;
  interface.name = name;
  interface.ifindex = ifindex;
  interface.flags = IFF_UP;
  interface.mtu = 1500;
  interface.has_mac = true;
  const uint8_t mac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, last_octet};
  std::memcpy(interface.mac, mac, sizeof mac);
  interface.addresses = {v4("192.0.2.1")};
  return interface;
}

Interface loopback() {
  Interface interface;
  interface.name = "lo";
  interface.ifindex = 1;
  interface.flags = IFF_UP | IFF_LOOPBACK;
  interface.mtu = 65536;
  interface.has_mac = true;  // the kernel says 00:00:00:00:00:00
  interface.addresses = {v4("127.0.0.1"), v6("::1")};
  return interface;
}

TEST(Interface, OnlyThoseUpWithAnAddressBecomeDevices) {
  Interface down = ethernet("down0", 3, 3);
  down.flags = 0;
  Interface bare = ethernet("bare0", 4, 4);
  bare.addresses.clear();
  std::vector<Interface> all = {ethernet("eth0", 2, 2), down, bare, loopback()};
  auto devices = make_devices(all);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "uiw_lo");
  EXPECT_EQ(devices[0].interface, "lo");
  EXPECT_EQ(devices[0].mtu, 65536u);
  EXPECT_EQ(devices[1].name, "uiw_eth0");
  EXPECT_EQ(devices[1].ifindex, 2u);
  EXPECT_EQ(devices[1].mac[5], 2);
}

TEST(Interface, NoInterfacesNoDevices) {
  EXPECT_TRUE(make_devices({}).empty());
}

TEST(Interface, UverbsNumbersStartBeyondRealOnesAndDiffer) {
  std::vector<Interface> all = {loopback(), ethernet("eth0", 2, 2)};
  auto devices = make_devices(all);
  EXPECT_EQ(devices[0].uverbs_minor, kFirstUverbsMinor);
  EXPECT_EQ(devices[1].uverbs_minor, kFirstUverbsMinor + 1);
}

TEST(Interface, GuidIsTheEui64OfTheMac) {
  std::vector<Interface> all = {ethernet("eth0", 2, 0x55)};
  EXPECT_EQ(make_devices(all)[0].node_guid, 0x001122fffe334455u);
}

TEST(Interface, GuidIsTheSameEveryTime) {
  std::vector<Interface> all = {loopback(), ethernet("eth0", 2, 2)};
  auto first = make_devices(all), second = make_devices(all);
  EXPECT_EQ(first[0].node_guid, second[0].node_guid);
  EXPECT_EQ(first[1].node_guid, second[1].node_guid);
}

TEST(Interface, GuidsDifferWithoutAMacAndWithASharedOne) {
  Interface tun = ethernet("tun0", 5, 0);
  tun.has_mac = false;
  std::vector<Interface> all = {loopback(), ethernet("eth0", 2, 2), ethernet("eth0.7", 3, 2),
                                ethernet("eth0.8", 4, 2), tun};
  std::set<uint64_t> guids;
  for (const Device& device : make_devices(all)) {
    EXPECT_NE(device.node_guid, 0u) << device.name;
    EXPECT_TRUE(guids.insert(device.node_guid).second) << device.name;
  }
  EXPECT_EQ(guids.size(), all.size());
}

TEST(Interface, GidsAreIpv4FirstThenIpv6InOrderWithoutDuplicates) {
  Interface interface = ethernet("eth0", 2, 2);
  interface.addresses = {v6("fe80::1"), v4("192.0.2.1"), v6("2001:db8::1"), v4("198.51.100.9"),
                         v4("192.0.2.1")};
  auto device = make_devices(std::span(&interface, 1)).front();
  std::vector<std::string> gids;
  for (const in6_addr& gid : device.gids) gids.push_back(text(gid));
  EXPECT_EQ(gids, (std::vector<std::string>{"::ffff:192.0.2.1", "::ffff:198.51.100.9", "fe80::1",
                                            "2001:db8::1"}));
}

}  // namespace
}  // namespace uiw::device
