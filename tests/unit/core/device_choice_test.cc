// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/device_choice.h"

#include <gtest/gtest.h>

namespace uiw::core {
namespace {

TEST(DeviceChoice, AnEmptyListChoosesAll) {
  EXPECT_TRUE(is_chosen("", "lo"));
  EXPECT_TRUE(is_chosen("", "eth0"));
}

TEST(DeviceChoice, NamesChooseThoseAndNoOthers) {
  EXPECT_TRUE(is_chosen("lo,eth*", "lo"));
  EXPECT_TRUE(is_chosen("lo,eth*", "eth12"));
  EXPECT_FALSE(is_chosen("lo,eth*", "veth0"));
  EXPECT_FALSE(is_chosen("lo", "lo1"));
  EXPECT_TRUE(is_chosen("eth[02]", "eth2"));
  EXPECT_FALSE(is_chosen("eth[02]", "eth1"));
}

TEST(DeviceChoice, WithNothingButOnesToLeaveOutAllOthersAreChosen) {
  for (const char* list : {"!lo,!docker*", "-lo,-docker*"}) {
    EXPECT_FALSE(is_chosen(list, "lo"));
    EXPECT_FALSE(is_chosen(list, "docker0"));
    EXPECT_TRUE(is_chosen(list, "eth0"));
  }
}

TEST(DeviceChoice, WhatIsLeftOutIsSoInWhateverOrder) {
  for (const char* list : {"eth*,!eth1", "!eth1,eth*"}) {
    EXPECT_TRUE(is_chosen(list, "eth0"));
    EXPECT_FALSE(is_chosen(list, "eth1"));
    EXPECT_FALSE(is_chosen(list, "lo"));
  }
}

TEST(DeviceChoice, ADevicesNameStandsForItsInterfaces) {
  EXPECT_TRUE(is_chosen("uiw_eth0", "eth0"));
  EXPECT_FALSE(is_chosen("uiw_eth0", "eth1"));
  EXPECT_FALSE(is_chosen("!uiw_lo", "lo"));
}

TEST(DeviceChoice, PatternsAndWhatIsLeftOutAreNoSingleNames) {
  EXPECT_EQ(single_names("lo,eth*,!docker0,-none,uiw_eth1,e?h,e[ab]"),
            (std::vector<std::string>{"lo", "uiw_eth1"}));
  EXPECT_TRUE(single_names("").empty());
  EXPECT_TRUE(is_name_of("eth1", "eth1"));
  EXPECT_TRUE(is_name_of("uiw_eth1", "eth1"));
  EXPECT_FALSE(is_name_of("eth", "eth1"));
}

TEST(DeviceChoice, WhatIsNoListIsNone) {
  for (const char* good : {"lo", "!lo", "-lo,eth*", "a,b,c", "uiw_eth0"})
    EXPECT_TRUE(is_device_list(good)) << good;
  for (const char* bad : {"", ",", "lo,", ",lo", "lo,,eth0", "!", "-", "!!lo", "lo eth0", " lo"})
    EXPECT_FALSE(is_device_list(bad)) << bad;
}

}  // namespace
}  // namespace uiw::core
