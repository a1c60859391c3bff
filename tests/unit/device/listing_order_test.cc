// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/listing_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "support/gid.h"

namespace uiw::device {
namespace {

using test::gid;
using ::testing::ElementsAre;

class ListingOrder : public testing::Test {
 protected:
  void add(const char* name, std::vector<in6_addr> addresses, bool is_bridge = false) {
    devices_.emplace_back().name = name;
    State state;
    state.is_bridge = is_bridge;
    state.addresses = std::move(addresses);
    state.active = true;
    listed_.push_back({&devices_.back(), std::move(state)});
  }
  std::vector<std::string> names() {
    std::ranges::sort(listed_, comes_first);
    std::vector<std::string> out;
    for (const Listed& each : listed_) out.push_back(each.device->name);
    return out;
  }

  std::vector<std::string> names_without_loopback() {
    leave_loopback_out(listed_);
    return names();
  }
  void set_down() { listed_.back().state.active = false; }

 private:
  std::deque<Device> devices_;
  std::vector<Listed> listed_;
};

const in6_addr kLinkLocal = gid("fe80::1"), kPublic = gid("2001:db8::1"),
               kIpv4 = gid("::ffff:192.0.2.1"), kIpv4LinkLocal = gid("::ffff:169.254.7.7");

TEST_F(ListingOrder, NetworksThenLinksThenLoopback) {
  add("uiw_lo", {gid("::ffff:127.0.0.1"), gid("::1")});
  add("uiw_veth1", {kLinkLocal});
  add("uiw_docker0", {kIpv4LinkLocal, kLinkLocal});
  add("uiw_wlan0", {kLinkLocal, kIpv4});
  add("uiw_eth0", {kPublic});
  EXPECT_THAT(names(), ElementsAre("uiw_eth0", "uiw_wlan0", "uiw_docker0", "uiw_veth1", "uiw_lo"));
}

// Docker's has an address like any other, and a name that comes before most.
TEST_F(ListingOrder, BridgesComeAfterOtherNetworks) {
  add("uiw_lo", {gid("::ffff:127.0.0.1")});
  add("uiw_docker0", {kIpv4}, true);
  add("uiw_virbr0", {kLinkLocal}, true);
  add("uiw_veth1", {kLinkLocal});
  add("uiw_eth0", {kIpv4});
  EXPECT_THAT(names(), ElementsAre("uiw_eth0", "uiw_docker0", "uiw_veth1", "uiw_virbr0", "uiw_lo"));
}

TEST_F(ListingOrder, NumbersInNamesCount) {
  add("uiw_eth10", {kIpv4});
  add("uiw_eth9", {kIpv4});
  add("uiw_eth1", {kIpv4});
  EXPECT_THAT(names(), ElementsAre("uiw_eth1", "uiw_eth9", "uiw_eth10"));
}

// A slot of the GID table whose address has gone is all zero.
TEST_F(ListingOrder, AnAddressThatHasGoneReachesNothing) {
  add("uiw_a", {in6addr_any, kLinkLocal});
  add("uiw_b", {kIpv4});
  add("uiw_c", {});
  EXPECT_THAT(names(), ElementsAre("uiw_b", "uiw_a", "uiw_c"));
}

TEST_F(ListingOrder, LoopbackWithAnotherAddressIsLoopback) {
  add("uiw_lo", {gid("::ffff:127.0.0.1"), kIpv4});
  add("uiw_veth1", {kLinkLocal});
  EXPECT_THAT(names(), ElementsAre("uiw_veth1", "uiw_lo"));
}

TEST_F(ListingOrder, LoopbackIsLeftOutBesideWhatLeadsToOtherHosts) {
  add("uiw_lo", {gid("::ffff:127.0.0.1")});
  add("uiw_veth1", {kLinkLocal});
  add("uiw_docker0", {kIpv4}, true);
  EXPECT_THAT(names_without_loopback(), ElementsAre("uiw_docker0", "uiw_veth1"));
}

TEST_F(ListingOrder, LoopbackStaysBesideWhatIsDownOrEndsAtTheNextLink) {
  add("uiw_lo", {gid("::ffff:127.0.0.1")});
  add("uiw_veth1", {kLinkLocal});
  add("uiw_eth0", {kIpv4});
  set_down();
  EXPECT_THAT(names_without_loopback(), ElementsAre("uiw_eth0", "uiw_veth1", "uiw_lo"));
}

}  // namespace
}  // namespace uiw::device
