// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Multicast groups of ids, and the accounting of their events.
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

class MulticastTest : public ConnectionTest {
 protected:
  MulticastTest() : ConnectionTest(device::CmRules::kInfiniband) { space_ = PortSpace::kUdp; }

  uint32_t new_bound(uint64_t uid, const char* host = "127.0.0.1") {
    const uint32_t id = new_id(uid);
    EXPECT_EQ(0, manager_.bind(channel_.channel, id, ip(host, 0)));
    return id;
  }
  int join(uint32_t id, uint64_t uid, const char* group = "239.1.2.3") {
    return manager_.join(channel_.channel, id, uid, ip(group, 0), membership_);
  }
  // Returns the membership's number, after its event.
  uint32_t joined(uint32_t id, uint64_t uid, const char* group = "239.1.2.3") {
    EXPECT_EQ(0, join(id, uid, group));
    channel_.expect(EventType::kMulticastJoin);
    return membership_;
  }
  // Returns events_reported.
  uint32_t leave(uint32_t membership) {
    uint32_t reported = 99;
    EXPECT_EQ(0, manager_.leave(channel_.channel, membership, reported));
    return reported;
  }
  int try_leave(uint32_t membership, TestChannel& channel) {
    uint32_t reported;
    return manager_.leave(channel.channel, membership, reported);
  }

  uint32_t membership_ = 0;
};

TEST_F(MulticastTest, TheEventIsTheMembershipsAndSaysWhereToSendTo) {
  const uint32_t id = new_bound(1);
  ASSERT_EQ(0, join(id, 77));
  const Event event = channel_.expect(EventType::kMulticastJoin);
  EXPECT_EQ(77u, event.uid);
  EXPECT_EQ(membership_, event.id);
  EXPECT_EQ(0xffffffu, event.param.qp_num);
  EXPECT_EQ(0x01234567u, event.param.qkey);
  EXPECT_TRUE(transport::same_host(ip("239.1.2.3", 0), event.route.destination));
  EXPECT_TRUE(transport::same_host(ip("127.0.0.1", 0), event.route.source));
  EXPECT_NE(nullptr, event.route.device);
}

TEST_F(MulticastTest, BothCountsAddUp) {
  const uint32_t id = new_bound(1);
  const uint32_t one = joined(id, 71), two = joined(id, 72, "239.1.2.4");
  EXPECT_NE(one, two);
  ASSERT_EQ(0, join(id, 73, "239.1.2.5"));
  const uint32_t not_fetched = membership_;
  EXPECT_EQ(1u, leave(one));
  EXPECT_EQ(0u, leave(not_fetched));
  EXPECT_EQ(0, channel_.queued());
  EXPECT_EQ(2u, destroy(id));
  EXPECT_EQ(ENOENT, try_leave(two, channel_));
}

TEST_F(MulticastTest, TheIdTakesItsMembershipsWithIt) {
  const uint32_t id = new_bound(1);
  ASSERT_EQ(0, join(id, 71));
  EXPECT_EQ(0u, destroy(id));
  EXPECT_EQ(0, channel_.queued());
  EXPECT_EQ(ENOENT, try_leave(membership_, channel_));
}

TEST_F(MulticastTest, ToJoinTwiceIsToBeTwoMembers) {
  const uint32_t id = new_bound(1);
  const uint32_t one = joined(id, 71), two = joined(id, 72);
  EXPECT_EQ(1u, leave(one));
  EXPECT_EQ(ENOENT, try_leave(one, channel_));
  EXPECT_EQ(1u, leave(two));
}

TEST_F(MulticastTest, AnAddressFirst) {
  const uint32_t id = new_id(1), any = new_bound(2, "0.0.0.0");
  EXPECT_EQ(EINVAL, join(id, 71));
  EXPECT_EQ(EINVAL, join(any, 71));  // of no device
  ASSERT_EQ(0, manager_.bind(channel_.channel, id, ip("127.0.0.1", 0)));
  joined(id, 71);
}

// mckey's way: the group is where it wants to go.
TEST_F(MulticastTest, TheWayToAGroupIsByTheAddressThatWasNamed) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0,
            manager_.resolve_address(channel_.channel, id, ip("127.0.0.1", 0), ip("239.1.2.3", 0)));
  channel_.expect(EventType::kAddrResolved);
  joined(id, 71);
  ASSERT_EQ(0, manager_.resolve_route(channel_.channel, id));
  channel_.expect(EventType::kRouteResolved);
  EXPECT_EQ(EINVAL, join(id, 72));  // as in the kernel
}

TEST_F(MulticastTest, NotEverythingIsAGroup) {
  const uint32_t id = new_bound(1);
  for (const char* address : {"0.0.0.0", "127.0.0.1", "223.255.255.255", "240.0.0.0", "ff0e::1"})
    EXPECT_EQ(EINVAL, join(id, 71, address)) << address;
  for (const char* address : {"224.0.0.1", "239.255.255.255"}) joined(id, 71, address);
  const uint32_t id6 = new_bound(2, "::1");
  EXPECT_EQ(EINVAL, join(id6, 71, "239.1.2.3"));
  EXPECT_EQ(EINVAL, join(id6, 71, "::1"));
  joined(id6, 71, "ff0e::1");
}

TEST_F(MulticastTest, OnlyIdsForDatagrams) {
  space_ = PortSpace::kTcp;
  const uint32_t id = new_bound(1);
  EXPECT_EQ(EINVAL, join(id, 71));
  EXPECT_EQ(ENOENT, join(id + 1000, 71));
}

TEST_F(MulticastTest, MembershipsMoveWithTheirId) {
  TestChannel other(manager_);
  const uint32_t id = new_bound(1);
  ASSERT_EQ(0, join(id, 71));
  EXPECT_EQ(EINVAL, try_leave(membership_, other));
  uint32_t reported;
  ASSERT_EQ(0, manager_.migrate_id(other.channel, channel_.channel, id, reported));
  EXPECT_EQ(71u, other.expect(EventType::kMulticastJoin).uid);
  EXPECT_EQ(EINVAL, try_leave(membership_, channel_));
  EXPECT_EQ(0, try_leave(membership_, other));
}

class IwarpMulticastTest : public ConnectionTest {};

TEST_F(IwarpMulticastTest, ThereAreNoGroups) {
  uint32_t membership;
  for (PortSpace space : {PortSpace::kTcp, PortSpace::kUdp}) {
    space_ = space;
    const uint32_t id = new_id(1);
    ASSERT_EQ(0, manager_.bind(channel_.channel, id, ip("127.0.0.1", 0)));
    EXPECT_EQ(EOPNOTSUPP, manager_.join(channel_.channel, id, 71, ip("239.1.2.3", 0), membership));
  }
}

}  // namespace
}  // namespace uiw::cm::test
