// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// The header of a datagram, byte by byte.
#include "datagram/header.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace uiw::datagram {
namespace {

using Raw = std::array<uint8_t, kHeaderSize>;

constexpr Raw kFull = {'u',  'i',  'U',  'D',                           // magic
                       0x01,                                            // version
                       0x07,                                            // immediate, solicited, v2
                       0x00, 0x00, 0x00, 0x12, 0x34, 0x56,              // to
                       0x00, 0xab, 0xcd, 0xef, 0x11, 0x22, 0x33, 0x44,  // from, Q_Key
                       0xde, 0xad, 0xbe, 0xef};                         // immediate

TEST(Header, IsWrittenSo) {
  Header header{.to = 0x123456,
                .from = 0xabcdef,
                .qkey = 0x11223344,
                .gid_type = GidType::kV2,
                .solicited = true,
                .has_immediate = true,
                .immediate = htonl(0xdeadbeef)};
  Raw raw;
  raw.fill(0xff);
  store(header, raw.data());
  EXPECT_EQ(raw, kFull);
  header = {.to = 1, .from = 2, .qkey = 3};
  store(header, raw.data());
  EXPECT_EQ(raw, (Raw{'u', 'i', 'U', 'D', 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}));
}

TEST(Header, IsReadAsWritten) {
  const auto header = load_header(kFull);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->to, 0x123456u);
  EXPECT_EQ(header->from, 0xabcdefu);
  EXPECT_EQ(header->qkey, 0x11223344u);
  EXPECT_EQ(header->gid_type, GidType::kV2);
  EXPECT_TRUE(header->solicited);
  EXPECT_TRUE(header->has_immediate);
  EXPECT_EQ(header->immediate, htonl(0xdeadbeef));
}

TEST(Header, EachFlagIsItsOwn) {
  for (uint8_t flags = 0; flags < 8; ++flags) {
    Raw raw = kFull;
    raw[5] = flags;
    const auto header = load_header(raw);
    ASSERT_TRUE(header) << int{flags};
    EXPECT_EQ(header->has_immediate, bool(flags & 1));
    EXPECT_EQ(header->solicited, bool(flags & 2));
    EXPECT_EQ(header->gid_type, flags & 4 ? GidType::kV2 : GidType::kV1);
  }
}

TEST(Header, ATruncatedOneIsNone) {
  for (size_t size = 0; size < kHeaderSize; ++size) {
    const std::vector<uint8_t> cut(kFull.begin(), kFull.begin() + static_cast<long>(size));
    EXPECT_FALSE(load_header(cut)) << size;
  }
  std::vector<uint8_t> longer(kFull.begin(), kFull.end());
  longer.push_back(0xee);
  EXPECT_TRUE(load_header(longer));
}

TEST(Header, WhatThisVersionDoesNotHaveIsNone) {
  for (size_t i = 0; i < 8; ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (i == 5 && bit < 3) continue;  // the flags that there are
      Raw raw = kFull;
      raw[i] = static_cast<uint8_t>(raw[i] ^ 1u << bit);
      EXPECT_FALSE(load_header(raw)) << "byte " << i << ", bit " << bit;
    }
  }
  for (size_t i : {size_t{8}, size_t{12}}) {
    Raw raw = kFull;
    raw[i] = 1;
    EXPECT_FALSE(load_header(raw)) << "a number of 25 bits at " << i;
  }
}

}  // namespace
}  // namespace uiw::datagram
