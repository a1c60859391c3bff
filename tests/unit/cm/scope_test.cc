// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Link-local addresses, which need an interface.
#include <ifaddrs.h>

#include <optional>

#include "unit/cm/rig.h"

namespace uiw::cm::test {
namespace {

// One of this host, with its scope; none where IPv6 is off.
std::optional<sockaddr_storage> link_local_address() {
  std::optional<sockaddr_storage> found;
  ifaddrs* list = nullptr;
  EXPECT_EQ(0, getifaddrs(&list));
  for (const ifaddrs* entry = list; entry != nullptr && !found; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET6) continue;
    sockaddr_storage address{};
    std::memcpy(&address, entry->ifa_addr, sizeof(sockaddr_in6));
    if (IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6&>(address).sin6_addr) &&
        device::find_by_address(address) != nullptr)
      found = address;
  }
  freeifaddrs(list);
  return found;
}

uint32_t& scope_of(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr_in6&>(address).sin6_scope_id;
}

class ScopeTest : public ConnectionTest {
 protected:
  void SetUp() override {
    ConnectionTest::SetUp();
    const std::optional<sockaddr_storage> own = link_local_address();
    if (!own) GTEST_SKIP() << "this host has no link-local address";
    own_ = to_ = *own;
    scope_of(to_) = 0;
    transport::set_port(to_, 9);
  }
  void expect_scope_of_own(uint32_t id) {
    channel_.expect(EventType::kAddrResolved);
    Route route;
    ASSERT_EQ(0, manager_.query(channel_.channel, id, route));
    EXPECT_EQ(scope_of(own_), scope_of(route.source));
    EXPECT_EQ(scope_of(own_), scope_of(route.destination));
  }

  sockaddr_storage own_{}, to_{};
};

TEST_F(ScopeTest, ADestinationWithoutOneIsOnTheInterfaceOfTheBoundAddress) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0, manager_.bind(channel_.channel, id, own_));
  ASSERT_EQ(0, manager_.resolve_address(channel_.channel, id, {}, to_));
  expect_scope_of_own(id);
}

TEST_F(ScopeTest, ADestinationWithoutOneIsOnTheInterfaceOfTheSource) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0, manager_.resolve_address(channel_.channel, id, own_, to_));
  expect_scope_of_own(id);
}

TEST_F(ScopeTest, WithoutASourceThereIsNoWay) {
  const uint32_t id = new_id(1);
  ASSERT_EQ(0, manager_.resolve_address(channel_.channel, id, {}, to_));
  channel_.expect(EventType::kAddrError, -EHOSTUNREACH);
}

}  // namespace
}  // namespace uiw::cm::test
