// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ddp/header.h"

#include <gtest/gtest.h>

#include "support/vectors.h"

namespace uiw::ddp {
namespace {

using test::Octets;

// The ULPDU of a vector: behind the length, and behind a marker where it begins with one.
Octets ulpdu_of(const test::Vector& v) {
  size_t start = v.octets[0] == 0 && v.octets[1] == 0 ? 6 : 2;
  return Octets(v.octets.begin() + static_cast<long>(start), v.octets.end());
}

bool is_fpdu(const test::Vector& v) {
  return v.has("op");
}

TEST(DdpHeader, DecodesAndEncodesEveryVector) {
  int tagged = 0;
  int untagged = 0;
  for (const auto& v : test::vectors()) {
    if (!is_fpdu(v)) continue;
    SCOPED_TRACE(v.id);
    Octets ulpdu = ulpdu_of(v);
    EXPECT_EQ(version_of(ulpdu[0]), kVersion);
    EXPECT_EQ(is_tagged(ulpdu[0]), v.has("stag"));
    uint8_t out[kUntaggedHeaderSize];
    uint8_t* end;
    if (is_tagged(ulpdu[0])) {
      tagged++;
      TaggedHeader header = decode_tagged(ulpdu.data());
      EXPECT_EQ(header.stag, v.field("stag"));
      EXPECT_EQ(header.to, v.field("to"));
      EXPECT_EQ(header.last, !v.has("last") || v.field("last") == 1);
      EXPECT_EQ(header.ulp_control, 0x40 | v.field("op"));
      end = encode(out, header);
      EXPECT_EQ(end - out, kTaggedHeaderSize);
    } else {
      untagged++;
      UntaggedHeader header = decode_untagged(ulpdu.data());
      EXPECT_EQ(header.qn, v.field("qn"));
      EXPECT_EQ(header.msn, v.field("msn"));
      EXPECT_EQ(header.mo, v.has("mo") ? v.field("mo") : 0);
      EXPECT_EQ(header.invalidate_stag, v.has("inv") ? v.field("inv") : 0);
      EXPECT_EQ(header.last, !v.has("last") || v.field("last") == 1);
      EXPECT_EQ(header.ulp_control, 0x40 | v.field("op"));
      end = encode(out, header);
      EXPECT_EQ(end - out, kUntaggedHeaderSize);
    }
    std::span<const uint8_t> expected(ulpdu.data(), static_cast<size_t>(end - out));
    EXPECT_EQ(test::to_hex({out, end}), test::to_hex(expected));
  }
  EXPECT_EQ(tagged, 7);
  EXPECT_EQ(untagged, 27);
}

// DS-04: reserved bits are 0 on send and not looked at on receive.
TEST(DdpHeader, IgnoresReservedBits) {
  Octets ulpdu = test::untagged(3, 0, 7, 8, {}, true, 0x01020304);
  ulpdu[0] |= 0x3c;
  EXPECT_EQ(version_of(ulpdu[0]), 1);
  EXPECT_FALSE(is_tagged(ulpdu[0]));
  UntaggedHeader header = decode_untagged(ulpdu.data());
  EXPECT_TRUE(header.last);
  EXPECT_EQ(header.msn, 7u);
  uint8_t out[kUntaggedHeaderSize];
  encode(out, header);
  EXPECT_EQ(out[0], 0x41);
}

// DV-01: all four values can be told apart.
TEST(DdpHeader, ReadsTheVersion) {
  for (uint8_t version = 0; version < 4; version++) {
    EXPECT_EQ(version_of(static_cast<uint8_t>(0xfc | version)), version);
  }
  EXPECT_EQ(version_of(test::negative("N01").octets[2]), 0);
  EXPECT_EQ(version_of(test::negative("N02").octets[2]), 2);
}

// DS-07: the full range of every field, so also MSN and offsets next to their wrap.
TEST(DdpHeader, KeepsExtremeValues) {
  uint8_t out[kUntaggedHeaderSize];
  encode(out, TaggedHeader{false, 0xff, 0xffffffff, 0xfffffffffffffffe});
  EXPECT_EQ(test::to_hex(out).substr(0, 28), "81fffffffffffffffffffffffffe");
  TaggedHeader tagged = decode_tagged(out);
  EXPECT_FALSE(tagged.last);
  EXPECT_EQ(tagged.stag, 0xffffffffu);
  EXPECT_EQ(tagged.to, 0xfffffffffffffffeu);
  encode(out, UntaggedHeader{true, 0x80, 0x89abcdef, 3, 0xffffffff, 0x80000001});
  EXPECT_EQ(test::to_hex(out), "418089abcdef00000003ffffffff80000001");
  UntaggedHeader untagged = decode_untagged(out);
  EXPECT_EQ(untagged.msn, 0xffffffffu);
  EXPECT_EQ(untagged.mo, 0x80000001u);
}

}  // namespace
}  // namespace uiw::ddp
