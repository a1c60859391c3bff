// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The 40 bytes in front of a received datagram, byte by byte; and the GIDs of groups.
#include "datagram/grh.h"

#include <gtest/gtest.h>

#include "datagram/group.h"
#include "support/gid.h"

namespace uiw::datagram {
namespace {

using uiw::test::gid;

Envelope envelope(const char* from, const char* to) {
  return {.source = gid(from), .destination = gid(to), .traffic_class = 0x28, .hop_limit = 17};
}

TEST(Grh, OfIp4HasItsHeaderInTheLast20Bytes) {
  const Grh grh = make_grh(envelope("::ffff:192.0.2.1", "::ffff:198.51.100.7"), GidType::kV2, 1000);
  // 20 + 8 + 24 + 1000 = 0x041c bytes. 0x4528 + 0x041c + 0 + 0x4000 + 0x1111 + 0xc000 + 0x0201 +
  // 0xc633 + 0x6407 = 0x28690 -> 0x8692, and its complement.
  EXPECT_EQ(grh, (Grh{0,    0,    0,    0,    0,   0,  0,    0, 0,  0,  0,    0,
                      0,    0,    0,    0,    0,   0,  0,    0,                      // undefined
                      0x45, 0x28, 0x04, 0x1c, 0,   0,  0x40, 0, 17, 17, 0x79, 0x6d,  // checksum
                      192,  0,    2,    1,    198, 51, 100,  7}));
}

TEST(Grh, OfIp4HasAChecksumThatAddsUp) {
  for (uint32_t payload : {0u, 1u, 64u, 4096u}) {
    for (const char* to : {"::ffff:127.0.0.1", "::ffff:255.255.255.255", "::ffff:224.0.0.1"}) {
      const Grh grh = make_grh(envelope("::ffff:255.254.253.252", to), GidType::kV2, payload);
      uint32_t sum = 0;
      for (size_t i = 20; i < kGrhSize; i += 2) sum += core::load_be16(grh.data() + i);
      while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
      EXPECT_EQ(sum, 0xffffu) << payload << ' ' << to;
    }
  }
}

TEST(Grh, OfIp6IsItsHeader) {
  const Grh grh = make_grh(envelope("2001:db8::1", "2001:db8::2"), GidType::kV2, 1000);
  EXPECT_EQ(grh, (Grh{0x62, 0x80, 0,    0,    0x04, 0x08, 17, 17,  // UDP of 1032 bytes
                      0x20, 0x01, 0x0d, 0xb8, 0,    0,    0,  0,  0, 0, 0, 0, 0, 0, 0, 1,
                      0x20, 0x01, 0x0d, 0xb8, 0,    0,    0,  0,  0, 0, 0, 0, 0, 0, 0, 2}));
}

TEST(Grh, OfRoceV1NamesMappedGidsAndInfinibandsTransport) {
  const Grh grh = make_grh(envelope("::ffff:192.0.2.1", "::ffff:198.51.100.7"), GidType::kV1, 1000);
  EXPECT_EQ(grh, (Grh{0x62, 0x80, 0, 0, 0x03, 0xe8, 0x1b, 17,  //
                      0,    0,    0, 0, 0,    0,    0,    0,  0, 0, 0xff, 0xff, 192, 0,  2,   1,
                      0,    0,    0, 0, 0,    0,    0,    0,  0, 0, 0xff, 0xff, 198, 51, 100, 7}));
  const Grh group = make_grh(envelope("::ffff:192.0.2.1", "::ffff:239.1.2.3"), GidType::kV1, 0);
  in6_addr destination;
  std::memcpy(&destination, group.data() + 24, sizeof destination);
  const in6_addr named = gid("ff0e::ffff:239.1.2.3");
  EXPECT_EQ(std::memcmp(&destination, &named, sizeof named), 0);
}

// UCX before 1.19 drops every datagram of a device that says something else.
TEST(Grh, OfWhichKindItIsTheServiceLevelSays) {
  EXPECT_EQ(header_kind(envelope("::ffff:192.0.2.1", "::ffff:198.51.100.7"), GidType::kV1), 0);
  EXPECT_EQ(header_kind(envelope("2001:db8::1", "2001:db8::2"), GidType::kV1), 0);
  EXPECT_EQ(header_kind(envelope("2001:db8::1", "2001:db8::2"), GidType::kV2), 1);
  EXPECT_EQ(header_kind(envelope("::ffff:192.0.2.1", "::ffff:198.51.100.7"), GidType::kV2), 2);
}

TEST(Groups, AreToldFromHosts) {
  for (const char* group :
       {"ff02::1", "ff0e::ffff:239.1.2.3", "::ffff:224.0.0.1", "::ffff:239.255.255.255"})
    EXPECT_TRUE(is_group(gid(group))) << group;
  for (const char* host : {"::1", "fe80::1", "::ffff:223.255.255.255", "::ffff:240.0.0.1", "::"})
    EXPECT_FALSE(is_group(gid(host))) << host;
}

TEST(Groups, OfRoceV1AreThoseOfIp4) {
  const struct {
    const char *named, *meant;
  } rows[] = {{"ff0e::ffff:239.1.2.3", "::ffff:239.1.2.3"},
              {"::ffff:239.1.2.3", "::ffff:239.1.2.3"},
              {"ff0e::ffff:10.1.2.3", "ff0e::ffff:10.1.2.3"},  // no group of IPv4
              {"ff0e::239.1.2.3", "ff0e::239.1.2.3"},
              {"ff02::ffff:239.1.2.3", "ff02::ffff:239.1.2.3"},
              {"2001:db8::1", "2001:db8::1"}};
  for (const auto& row : rows) {
    const in6_addr got = address_of_gid(gid(row.named)), meant = gid(row.meant);
    EXPECT_EQ(std::memcmp(&got, &meant, sizeof got), 0) << row.named;
  }
}

TEST(Groups, OfInterfaceLocalScopeLeaveTheHostAsLinkLocalOnes) {
  const struct {
    const char *named, *meant;
  } rows[] = {{"ff01:0:2:c985::", "ff02:0:2:c985::"},
              {"ff11::7", "ff12::7"},  // the flags are kept
              {"ff02::7", "ff02::7"},
              {"ff0e::7", "ff0e::7"}};
  for (const auto& row : rows) {
    const in6_addr got = address_of_gid(gid(row.named)), meant = gid(row.meant);
    EXPECT_EQ(std::memcmp(&got, &meant, sizeof got), 0) << row.named;
  }
}

}  // namespace
}  // namespace uiw::datagram
