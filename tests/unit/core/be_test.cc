// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "core/be.h"

#include <gtest/gtest.h>

namespace uiw::core {
namespace {

TEST(BigEndian, LoadsAndStoresAtAnyAlignment) {
  const uint8_t octets[9] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09};
  EXPECT_EQ(load_be16(octets), 0x0102);
  EXPECT_EQ(load_be16(octets + 1), 0x0203);
  EXPECT_EQ(load_be32(octets + 1), 0x02030405u);
  EXPECT_EQ(load_be64(octets), 0x0102030405060708u);
  EXPECT_EQ(load_be64(octets + 1), 0x0203040506070809u);
  uint8_t out[15] = {};
  store_be16(out + 1, 0x0102);
  store_be32(out + 3, 0x03040506);
  store_be64(out + 7, 0x0708090a0b0c0d0e);
  for (int i = 1; i < 15; i++) EXPECT_EQ(out[i], i);
  EXPECT_EQ(out[0], 0);
}

}  // namespace
}  // namespace uiw::core
