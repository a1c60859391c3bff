// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// rdma_set_option(): when it may be called, and what comes of it.
#include <gtest/gtest.h>

#include "support/living_child.h"
#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

using OptionsTest = ConnectionTest;

TEST_F(OptionsTest, Options) {
  const uint32_t id = new_id(1);
  const uint8_t octet[4] = {8, 0, 0, 0};
  const core::Bytes one{octet, 1}, four{octet, 4}, three{octet, 3};
  auto set = [&](Manager::Option option, core::Bytes value) {
    return manager_.set_option(channel_.channel, id, option, value);
  };
  EXPECT_EQ(0, set(Manager::Option::kTos, one));
  EXPECT_EQ(EINVAL, set(Manager::Option::kTos, four));
  EXPECT_EQ(0, set(Manager::Option::kV6Only, four));
  EXPECT_EQ(EINVAL, set(Manager::Option::kV6Only, three));
  EXPECT_EQ(0, set(Manager::Option::kAckTimeout, one));
  EXPECT_EQ(EINVAL, set(Manager::Option::kAckTimeout, {}));
  EXPECT_EQ(ENOSYS, set(static_cast<Manager::Option>(99), one));
}

// As Linux's rdma_set_reuseaddr(), rdma_set_afonly() and rdma_set_service_type().
TEST_F(OptionsTest, WhenOptionsMayBeSet) {
  const uint32_t id = new_id(1);
  const auto set = [&](Manager::Option option, const auto& value) {
    return manager_.set_option(channel_.channel, id, option,
                               {reinterpret_cast<const uint8_t*>(&value), sizeof value});
  };
  const int off = 0, on = 1;
  const uint8_t tos = 8;
  EXPECT_EQ(0, set(Manager::Option::kReuseAddress, on));
  EXPECT_EQ(0, set(Manager::Option::kReuseAddress, off));
  EXPECT_EQ(0, set(Manager::Option::kV6Only, off));
  ASSERT_EQ(0, manager_.bind(channel_.channel, id, ip("::", 0)));
  EXPECT_EQ(0, set(Manager::Option::kReuseAddress, on));
  EXPECT_EQ(EINVAL, set(Manager::Option::kReuseAddress, off));
  EXPECT_EQ(EINVAL, set(Manager::Option::kReuseAddress, tos));  // another size
  EXPECT_EQ(0, set(Manager::Option::kV6Only, on));
  EXPECT_EQ(0, set(Manager::Option::kV6Only, off));
  EXPECT_EQ(0, set(Manager::Option::kTos, tos));
  ASSERT_EQ(0, manager_.listen(channel_.channel, id, 1));
  EXPECT_EQ(EINVAL, set(Manager::Option::kReuseAddress, on));
  EXPECT_EQ(EINVAL, set(Manager::Option::kReuseAddress, off));
  EXPECT_EQ(EINVAL, set(Manager::Option::kV6Only, on));
  EXPECT_EQ(0, set(Manager::Option::kTos, tos));
}

TEST_F(OptionsTest, OptionsOfAResolvedId) {
  const uint32_t id = new_id(1);
  const int on = 1;
  const core::Bytes value{reinterpret_cast<const uint8_t*>(&on), sizeof on};
  ASSERT_EQ(0, manager_.resolve_address(channel_.channel, id, {}, ip("127.0.0.1", 7174)));
  EXPECT_EQ(0, manager_.set_option(channel_.channel, id, Manager::Option::kReuseAddress, value));
  EXPECT_EQ(EINVAL, manager_.set_option(channel_.channel, id, Manager::Option::kV6Only, value));
}

TEST_F(OptionsTest, APortThatIsBoundMayBeSharedFromWhenBothAskForReuse) {
  const uint32_t first = new_id(1), second = new_id(2);
  const int on = 1;
  const core::Bytes value{reinterpret_cast<const uint8_t*>(&on), sizeof on};
  ASSERT_EQ(0, manager_.bind(channel_.channel, first, ip("127.0.0.1", 0)));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, first, route));
  ASSERT_EQ(0,
            manager_.set_option(channel_.channel, second, Manager::Option::kReuseAddress, value));
  EXPECT_EQ(EADDRINUSE, manager_.bind(channel_.channel, second, route.source));
  ASSERT_EQ(0, manager_.set_option(channel_.channel, first, Manager::Option::kReuseAddress, value));
  EXPECT_EQ(0, manager_.bind(channel_.channel, second, route.source));
}

TEST_F(OptionsTest, AnIdThatGoesFreesItsPortBesideAChild) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0, manager_.bind(channel_.channel, id, ip("127.0.0.1", 0)));
  Route route;
  ASSERT_EQ(0, manager_.query(channel_.channel, id, route));
  const ::uiw::test::LivingChild child;
  uint32_t reported;
  ASSERT_EQ(0, manager_.destroy_id(channel_.channel, id, reported));
  core::Result<int> alone = transport::bind_tcp(route.source, {.reuse_address = false});
  EXPECT_TRUE(alone) << "the child keeps the port: " << strerror(alone.error());
  if (alone) close(*alone);
}

TEST_F(OptionsTest, V6OnlyLeavesThePortToIpv4WhetherItIsSetBeforeOrAfterBinding) {
  // Another process may have the IPv4 port of one number, but not of each.
  int errors[2] = {EADDRINUSE, EADDRINUSE};
  for (uint32_t i = 0; i < 40; ++i) {
    int& error = errors[i % 2];
    if (error != EADDRINUSE) continue;
    const uint32_t v6 = new_id(2 * i + 1), v4 = new_id(2 * i + 2);
    const int on = 1;
    const auto only_v6 = [&] {
      return manager_.set_option(channel_.channel, v6, Manager::Option::kV6Only,
                                 {reinterpret_cast<const uint8_t*>(&on), sizeof on});
    };
    const bool before = i % 2 == 0;
    if (before) ASSERT_EQ(0, only_v6());
    ASSERT_EQ(0, manager_.bind(channel_.channel, v6, ip("::", 0)));
    Route bound, route;
    ASSERT_EQ(0, manager_.query(channel_.channel, v6, bound));
    if (!before) ASSERT_EQ(0, only_v6());
    ASSERT_EQ(0, manager_.listen(channel_.channel, v6, 1));
    ASSERT_EQ(0, manager_.query(channel_.channel, v6, route));
    EXPECT_EQ(transport::port_of(bound.source), transport::port_of(route.source));
    error = manager_.bind(channel_.channel, v4, ip("0.0.0.0", transport::port_of(route.source)));
    if (error == 0) EXPECT_EQ(0, manager_.listen(channel_.channel, v4, 1));
  }
  for (int error : errors) EXPECT_EQ(error, 0);
}

}  // namespace
}  // namespace uiw::cm::test
