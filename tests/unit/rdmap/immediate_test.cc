// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdmap/immediate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "support/vectors.h"

namespace uiw::rdmap {
namespace {

constexpr size_t kDataOffset = 20;  // in an FPDU: length 2, DDP header 18

TEST(Immediate, DecodesAndEncodesTheVector) {
  const test::Octets& octets = test::vector("V15-imm").octets;
  EXPECT_EQ(decode_immediate(&octets[kDataOffset]), htonl(0xdeadbeef));
  uint8_t out[kImmediateSize];
  EXPECT_EQ(encode_immediate(out, htonl(0xdeadbeef)), out + kImmediateSize);
  EXPECT_EQ(test::to_hex(out), test::to_hex({&octets[kDataOffset], kImmediateSize}));
}

// IM-10: in the first half, or in the second where the first says nothing.
TEST(Immediate, IsFoundInEitherHalf) {
  const auto found = [](std::string_view hex) {
    return ntohl(decode_immediate(test::from_hex(hex).data()));
  };
  EXPECT_EQ(found("01020304 00000000"), 0x01020304u);
  EXPECT_EQ(found("00000000 01020304"), 0x01020304u);
  EXPECT_EQ(found("01020304 05060708"), 0x01020304u);
  EXPECT_EQ(found("00000000 00000000"), 0u);
  EXPECT_EQ(found("00000001 00000000"), 1u);
  EXPECT_EQ(found("00000000 80000000"), 0x80000000u);
}

}  // namespace
}  // namespace uiw::rdmap
