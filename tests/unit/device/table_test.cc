// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/table.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>

#include "core/gid.h"
#include "support/gid.h"

namespace uiw::device {
namespace {

using test::gid;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Noticed = Table::Noticed;

in6_addr v4(const char* text) {
  in_addr out;
  EXPECT_EQ(inet_pton(AF_INET, text, &out), 1) << text;
  return core::mapped(out);
}

std::vector<std::string> texts(const std::vector<in6_addr>& addresses) {
  std::vector<std::string> out;
  for (const in6_addr& address : addresses) {
    char text[INET6_ADDRSTRLEN];
    out.push_back(inet_ntop(AF_INET6, &address, text, sizeof text));
  }
  return out;
}

Interface ethernet(const char* name, unsigned ifindex, uint8_t last_octet) {
  Interface interface;
  interface.name = name;
  interface.ifindex = ifindex;
  interface.up = true;
  interface.carrier = true;
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
  interface.up = true;
  interface.carrier = true;
  interface.mtu = 65536;
  interface.has_mac = true;  // the kernel says 00:00:00:00:00:00
  interface.addresses = {v4("127.0.0.1"), gid("::1")};
  return interface;
}

// A table, and the interfaces as a test changes them.
class TableTest : public ::testing::Test {
 protected:
  std::vector<Noticed> update() { return table.update(interfaces); }
  const Device& device(size_t i) const { return table.entries()[i]->device; }
  const State& state(size_t i) const { return table.entries()[i]->state; }
  size_t size() const { return table.entries().size(); }

  Table table;
  std::vector<Interface> interfaces;
};

TEST_F(TableTest, OnlyThoseUpWithAnAddressBecomeDevices) {
  Interface down = ethernet("down0", 3, 3);
  down.up = false;
  Interface bare = ethernet("bare0", 4, 4);
  bare.addresses.clear();
  interfaces = {ethernet("eth0", 2, 2), down, bare, loopback()};
  EXPECT_THAT(update(), IsEmpty());  // nobody can know them yet
  ASSERT_EQ(size(), 2u);
  EXPECT_EQ(device(0).name, "uiw_lo");
  EXPECT_EQ(state(0).interface, "lo");
  EXPECT_EQ(state(0).mtu, 65536u);
  EXPECT_TRUE(state(0).active);
  EXPECT_EQ(device(1).name, "uiw_eth0");
  EXPECT_EQ(device(1).ifindex, 2u);
}

TEST_F(TableTest, APortThatIsHeldDownIsDownUntilItIsLetGo) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  const uint64_t before = table.version();
  EXPECT_THAT(table.hold_down(device(0), Holder::kByName, true),
              ElementsAre(Noticed{&device(0), Change::kPortDown}));
  EXPECT_FALSE(state(0).active);
  EXPECT_GT(table.version(), before);
  EXPECT_THAT(table.hold_down(device(0), Holder::kByName, true), IsEmpty());
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_FALSE(state(0).active);
  interfaces[0].carrier = false;
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_THAT(table.hold_down(device(0), Holder::kByName, false),
              IsEmpty());  // the cable is out, too
  interfaces[0].carrier = true;
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kPortActive}));
  table.hold_down(device(0), Holder::kByName, true);
  EXPECT_THAT(table.hold_down(device(0), Holder::kByName, false),
              ElementsAre(Noticed{&device(0), Change::kPortActive}));
}

TEST_F(TableTest, APortThatIsHeldDownTwiceIsDownUntilBothLetItGo) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  for (const auto& [first, second] : {std::pair(Holder::kByName, Holder::kWithAll),
                                      std::pair(Holder::kWithAll, Holder::kByName)}) {
    EXPECT_THAT(table.hold_down(device(0), first, true),
                ElementsAre(Noticed{&device(0), Change::kPortDown}));
    EXPECT_THAT(table.hold_down(device(0), second, true), IsEmpty());
    EXPECT_THAT(table.hold_down(device(0), first, false), IsEmpty());
    EXPECT_FALSE(state(0).active);
    EXPECT_THAT(table.hold_down(device(0), second, false),
                ElementsAre(Noticed{&device(0), Change::kPortActive}));
  }
}

TEST_F(TableTest, AddressesMoveOneSlotUpAndANewOneTakesTheFirst) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  EXPECT_THAT(table.shift_addresses(device(0)), ElementsAre(Noticed{&device(0), Change::kGids}));
  EXPECT_THAT(texts(state(0).addresses), ElementsAre("::", "::ffff:192.0.2.1"));
  EXPECT_THAT(update(), IsEmpty());
  interfaces[0].addresses.push_back(v4("192.0.2.9"));
  update();
  EXPECT_THAT(texts(state(0).addresses), ElementsAre("::ffff:192.0.2.9", "::ffff:192.0.2.1"));
}

TEST_F(TableTest, NoInterfacesNoDevices) {
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_EQ(size(), 0u);
}

TEST_F(TableTest, InterfacesThatAreNotChosenGetNoDevice) {
  interfaces = {loopback(), ethernet("eth0", 2, 2), ethernet("veth0", 3, 3)};
  Table chosen("!lo,!veth*");
  chosen.update(interfaces);
  ASSERT_EQ(chosen.present().size(), 1u);
  EXPECT_EQ(chosen.present()[0]->device.name, "uiw_eth0");
  // It is chosen by the name that it has when it gets its device, which it then keeps.
  interfaces[1].name = "veth1";
  interfaces[2].name = "eth1";
  chosen.update(interfaces);
  ASSERT_EQ(chosen.present().size(), 2u);
  EXPECT_EQ(chosen.present()[0]->device.name, "uiw_eth0");
  EXPECT_EQ(chosen.present()[1]->device.name, "uiw_eth1");
}

TEST_F(TableTest, UverbsNumbersStartBeyondRealOnesAndDiffer) {
  interfaces = {loopback(), ethernet("eth0", 2, 2)};
  update();
  EXPECT_EQ(device(0).uverbs_minor, kFirstUverbsMinor);
  EXPECT_EQ(device(1).uverbs_minor, kFirstUverbsMinor + 1);
}

TEST_F(TableTest, GuidIsTheEui64OfTheMac) {
  interfaces = {ethernet("eth0", 2, 0x55)};
  update();
  EXPECT_EQ(device(0).node_guid, 0x001122fffe334455u);
}

TEST_F(TableTest, GuidIsTheSameInEveryProcess) {
  interfaces = {loopback(), ethernet("eth0", 2, 2)};
  update();
  Table other;
  other.update(interfaces);
  EXPECT_EQ(device(0).node_guid, other.entries()[0]->device.node_guid);
  EXPECT_EQ(device(1).node_guid, other.entries()[1]->device.node_guid);
}

TEST_F(TableTest, GuidsDifferWithoutAMacAndWithASharedOne) {
  Interface tun = ethernet("tun0", 5, 0);
  tun.has_mac = false;
  interfaces = {loopback(), ethernet("eth0", 2, 2), ethernet("eth0.7", 3, 2),
                ethernet("eth0.8", 4, 2), tun};
  update();
  std::set<uint64_t> guids;
  for (size_t i = 0; i < size(); ++i) {
    EXPECT_NE(device(i).node_guid, 0u) << device(i).name;
    EXPECT_TRUE(guids.insert(device(i).node_guid).second) << device(i).name;
  }
  EXPECT_EQ(guids.size(), interfaces.size());
}

TEST_F(TableTest, GidsAreIpv4FirstThenIpv6InOrderWithoutDuplicates) {
  interfaces = {ethernet("eth0", 2, 2)};
  interfaces[0].addresses = {gid("fe80::1"), v4("192.0.2.1"), gid("2001:db8::1"),
                             v4("198.51.100.9"), v4("192.0.2.1")};
  update();
  EXPECT_THAT(texts(state(0).addresses),
              ElementsAre("::ffff:192.0.2.1", "::ffff:198.51.100.9", "fe80::1", "2001:db8::1"));
}

TEST_F(TableTest, NothingNewIsNothing) {
  interfaces = {loopback(), ethernet("eth0", 2, 2)};
  update();
  const uint64_t version = table.version();
  const Device* before = &device(1);
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_EQ(table.version(), version);
  ASSERT_EQ(size(), 2u);
  EXPECT_EQ(&device(1), before);
}

TEST_F(TableTest, AnInterfaceThatComesLaterLeavesTheOthersAlone) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  const Device* before = &device(0);
  const std::string name = before->name;
  const uint32_t minor = before->uverbs_minor;
  const uint64_t version = table.version();
  interfaces.insert(interfaces.begin(), loopback());
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_GT(table.version(), version);
  ASSERT_EQ(size(), 2u);
  EXPECT_EQ(&device(0), before);
  EXPECT_EQ(device(0).name, name);
  EXPECT_EQ(device(0).uverbs_minor, minor);
  EXPECT_EQ(device(1).name, "uiw_lo");
  EXPECT_EQ(device(1).uverbs_minor, minor + 1);
}

TEST_F(TableTest, ItComesWithTheFirstAddressOrWhenItGoesUp) {
  interfaces = {ethernet("eth0", 2, 2), ethernet("eth1", 3, 3)};
  interfaces[0].addresses.clear();
  interfaces[1].up = interfaces[1].carrier = false;
  update();
  EXPECT_EQ(size(), 0u);
  interfaces[0].addresses = {v4("192.0.2.1")};
  update();
  ASSERT_EQ(size(), 1u);
  EXPECT_EQ(device(0).name, "uiw_eth0");
  interfaces[1].up = true;
  update();
  ASSERT_EQ(size(), 2u);
  EXPECT_FALSE(state(1).active);  // there is no carrier
}

TEST_F(TableTest, DownAndUpAndTheCarrier) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  interfaces[0].up = interfaces[0].carrier = false;
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kPortDown}));
  EXPECT_FALSE(state(0).active);
  EXPECT_FALSE(state(0).gone);
  interfaces[0].up = true;
  EXPECT_THAT(update(), IsEmpty());  // no carrier yet
  interfaces[0].carrier = true;
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kPortActive}));
  interfaces[0].carrier = false;
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kPortDown}));
}

TEST_F(TableTest, AGidKeepsItsIndexWhateverHappensToOthers) {
  interfaces = {ethernet("eth0", 2, 2)};
  interfaces[0].addresses = {v4("192.0.2.1"), v4("192.0.2.2"), gid("2001:db8::3")};
  update();
  interfaces[0].addresses = {gid("2001:db8::3"), v4("192.0.2.2")};
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kGids}));
  EXPECT_THAT(texts(state(0).addresses), ElementsAre("::", "::ffff:192.0.2.2", "2001:db8::3"));
  // The first free slot for the first of the new ones, then the end.
  interfaces[0].addresses = {gid("2001:db8::4"), gid("2001:db8::3"), v4("192.0.2.2"),
                             v4("192.0.2.5")};
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kGids}));
  EXPECT_THAT(texts(state(0).addresses),
              ElementsAre("::ffff:192.0.2.5", "::ffff:192.0.2.2", "2001:db8::3", "2001:db8::4"));
}

TEST_F(TableTest, AnAddressReplacedInOneLookTakesTheSlot) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  interfaces[0].addresses = {v4("192.0.2.9")};
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kGids}));
  EXPECT_THAT(texts(state(0).addresses), ElementsAre("::ffff:192.0.2.9"));
}

TEST_F(TableTest, WithoutAddressesItStays) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  interfaces[0].addresses.clear();
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kGids}));
  ASSERT_EQ(size(), 1u);
  EXPECT_FALSE(state(0).gone);
  EXPECT_THAT(texts(state(0).addresses), ElementsAre("::"));
}

TEST_F(TableTest, WhenTheInterfaceGoesTheDeviceIsGoneForEver) {
  interfaces = {loopback(), ethernet("eth0", 2, 2)};
  update();
  interfaces.pop_back();
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(1), Change::kPortDown},
                                    Noticed{&device(1), Change::kGone}));
  EXPECT_TRUE(state(1).gone);
  EXPECT_FALSE(state(1).active);
  EXPECT_THAT(texts(state(1).addresses), ElementsAre("::"));
  EXPECT_EQ(device(1).name, "uiw_eth0");  // who has it open may still ask
  EXPECT_THAT(update(), IsEmpty());
}

TEST_F(TableTest, OneThatWasDownGoesWithoutGoingDownAgain) {
  interfaces = {ethernet("eth0", 2, 2)};
  interfaces[0].carrier = false;
  update();
  interfaces.clear();
  EXPECT_THAT(update(), ElementsAre(Noticed{&device(0), Change::kGone}));
}

TEST_F(TableTest, TheNextOfThatNameIsAnotherDevice) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  const uint64_t guid = device(0).node_guid;
  interfaces = {ethernet("eth0", 7, 2)};  // the same MAC as well
  update();
  ASSERT_EQ(size(), 2u);
  EXPECT_TRUE(state(0).gone);
  EXPECT_FALSE(state(1).gone);
  EXPECT_EQ(device(1).name, "uiw_eth0");
  EXPECT_NE(device(1).uverbs_minor, device(0).uverbs_minor);
  EXPECT_NE(device(1).node_guid, guid);
}

TEST_F(TableTest, ARenamedInterfaceKeepsItsDevice) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  const uint64_t version = table.version();
  interfaces[0].name = "wan0";
  EXPECT_THAT(update(), IsEmpty());
  ASSERT_EQ(size(), 1u);
  EXPECT_EQ(device(0).name, "uiw_eth0");
  EXPECT_EQ(state(0).interface, "wan0");
  EXPECT_GT(table.version(), version);
  // The name is free for another interface, but not for another device.
  interfaces.push_back(ethernet("eth0", 9, 9));
  update();
  ASSERT_EQ(size(), 2u);
  EXPECT_EQ(device(1).name, "uiw_eth0_9");
  EXPECT_EQ(state(1).interface, "eth0");
}

TEST_F(TableTest, TheMtuIsFollowed) {
  interfaces = {ethernet("eth0", 2, 2)};
  update();
  const uint64_t version = table.version();
  EXPECT_EQ(device(0).path_mtu, 1024u);
  interfaces[0].mtu = 9000;
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_EQ(state(0).mtu, 9000u);
  EXPECT_EQ(device(0).path_mtu, 4096u);
  EXPECT_GT(table.version(), version);
}

}  // namespace
}  // namespace uiw::device
