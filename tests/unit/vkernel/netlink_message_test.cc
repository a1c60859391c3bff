// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "vkernel/netlink_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace uiw::vkernel::netlink {
namespace {

constexpr AttributeRule kRules[] = {{1, AttributeKind::kU32}, {2, AttributeKind::kText}};

TEST(NetlinkAttributes, AreFoundByType) {
  const uint8_t payload[] = {8, 0, 1, 0, 7, 0, 0, 0, 7, 0, 2, 0, 'a', 'b', 0, 0xff};
  const auto found = Attributes::parse(payload, kRules);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->u32(1), 7u);
  EXPECT_EQ(found->text(2), "ab");
  EXPECT_EQ(found->u32(3), std::nullopt);
}

TEST(NetlinkAttributes, TheLastOfATypeCountsAndFlagsOfTheTypeDoNot) {
  const uint8_t payload[] = {8, 0, 1, 0, 7, 0, 0, 0, 8, 0, 1, 0xc0, 9, 0, 0, 0};
  EXPECT_EQ(Attributes::parse(payload, kRules)->u32(1), 9u);
}

TEST(NetlinkAttributes, WhatHasNoRuleIsSkipped) {
  const uint8_t payload[] = {5, 0, 99, 0, 1, 0, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0};
  const auto found = Attributes::parse(payload, kRules);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->u32(1), 7u);
  EXPECT_EQ(found->u32(99), std::nullopt);
}

TEST(NetlinkAttributes, BrokenRulesAreTold) {
  const uint8_t short_number[] = {7, 0, 1, 0, 7, 0, 0, 0};
  EXPECT_FALSE(Attributes::parse(short_number, kRules));
  const uint8_t endless_text[] = {6, 0, 2, 0, 'a', 'b', 0, 0};
  EXPECT_FALSE(Attributes::parse(endless_text, kRules));
}

TEST(NetlinkAttributes, EndWhereALengthIsImpossible) {
  for (uint8_t length : {uint8_t{0}, uint8_t{3}, uint8_t{9}}) {
    const uint8_t payload[] = {8, 0, 1, 0, 7, 0, 0, 0, length, 0, 1, 0, 9, 0, 0, 0};
    EXPECT_EQ(Attributes::parse(payload, kRules)->u32(1), 7u) << int{length};
  }
}

TEST(NetlinkWriter, MessagesThatDoNotFitGetADatagramOfTheirOwn) {
  Writer writer(1);
  writer.answer_to(2);
  const std::string large(Writer::kDatagramSize / 2, 'x');
  for (int i = 0; i < 3; ++i) {
    writer.begin(20, 0);
    writer.text(2, large);
    writer.end();
  }
  const auto datagrams = writer.take();
  EXPECT_EQ(datagrams.size(), 3u);
  for (const Datagram& datagram : datagrams) {
    EXPECT_EQ(datagram.size(), 16 + 4 + NLMSG_ALIGN(large.size() + 1));
  }
}

TEST(NetlinkWriter, NestsKnowTheirLength) {
  Writer writer(1);
  writer.answer_to(2);
  writer.begin(20, 0);
  const size_t nest = writer.begin_nest(3);
  writer.u8(4, 5);
  writer.end_nest(nest);
  writer.end();
  EXPECT_THAT(writer.take(), testing::ElementsAre(testing::ElementsAre(
                                 28, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0,  // header
                                 12, 0, 3, 0, 5, 0, 4, 0, 5, 0, 0, 0)));
}

}  // namespace
}  // namespace uiw::vkernel::netlink
