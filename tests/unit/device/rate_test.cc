// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "device/rate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace uiw::device {
namespace {

Rate of(const char* address) {
  State state;
  state.addresses.emplace_back();
  EXPECT_EQ(inet_pton(AF_INET6, address, &state.addresses.back()), 1);
  return rate_of(state);
}

// UCX leaves out what has less than a fourth of the fastest one's (UCX_MULTI_LANE_MAX_RATIO).
TEST(Rate, OfTheLoopbackDeviceIsLessThanAFourthOfOthers) {
  for (const char* loopback : {"::1", "::ffff:127.0.0.1", "::ffff:127.1.2.3"}) {
    const Rate slow = of(loopback), fast = of("::ffff:10.0.0.1");
    EXPECT_EQ(slow.width, 2);  // 4 lanes
    EXPECT_EQ(slow.speed, 1);  // 2.5 Gb/s
    EXPECT_STREQ(slow.text, "10 Gb/sec (4X SDR)");
    EXPECT_EQ(fast.width, 2);
    EXPECT_EQ(fast.speed, 32);  // 25 Gb/s
    EXPECT_STREQ(fast.text, "100 Gb/sec (4X EDR)");
  }
}

TEST(Rate, OfADeviceWithoutAddressesIsTheUsual) {
  EXPECT_EQ(rate_of(State{}).speed, 32);
}

}  // namespace
}  // namespace uiw::device
