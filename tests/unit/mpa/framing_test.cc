// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mpa/framing.h"

#include <gtest/gtest.h>

#include "core/crc32c.h"
#include "support/vectors.h"

namespace uiw::mpa {
namespace {

using test::Octets;

// The vectors that are one FPDU without markers, with the length their first two octets say.
bool is_plain_fpdu(const test::Vector& v) {
  return !v.has("rev") && v.id != "V34-rfc5044-fig5" && v.id != "V35-rfc5044-fig6" &&
         !v.id.starts_with("V36");
}

TEST(Framing, SizesOfEveryVector) {
  int seen = 0;
  for (const auto& v : test::vectors()) {
    if (!is_plain_fpdu(v)) continue;
    SCOPED_TRACE(v.id);
    seen++;
    auto ulpdu_length = static_cast<uint32_t>(v.field("ulpdu_len"));
    EXPECT_EQ(static_cast<uint32_t>(v.octets[0] << 8 | v.octets[1]), ulpdu_length);
    EXPECT_EQ(fpdu_size(ulpdu_length), v.octets.size());
    if (v.has("pad")) {
      EXPECT_EQ(pad_size(ulpdu_length), v.field("pad"));
    }
  }
  EXPECT_EQ(seen, 28);
}

// RFC 5044 4.4: from the length to the last pad octet; least significant octet first on the wire.
TEST(Framing, CrcOfEveryVector) {
  for (const auto& v : test::vectors()) {
    if (v.has("rev") || v.id == "V30-send5-nocrc") continue;
    SCOPED_TRACE(v.id);
    size_t covered = v.octets.size() - kCrcSize;
    uint32_t value = core::crc32c(v.octets.data(), covered);
    const uint8_t* p = v.octets.data() + covered;
    EXPECT_EQ(value, static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 |
                         static_cast<uint32_t>(p[2]) << 16 | static_cast<uint32_t>(p[3]) << 24);
  }
}

TEST(Framing, PadsToFourOctets) {
  for (uint32_t length = 0; length <= kMaxUlpdu; length++) {
    uint32_t pad = pad_size(length);
    ASSERT_LE(pad, 3u);
    ASSERT_EQ((kLengthSize + length + pad) % 4, 0u) << length;
    ASSERT_EQ(fpdu_size(length), kLengthSize + length + pad + kCrcSize);
    ASSERT_LE(fpdu_size(length), kMaxFpdu);
  }
}

TEST(Framing, ReferenceBuilderMakesTheVectors) {
  for (const auto& v : test::vectors()) {
    if (!is_plain_fpdu(v)) continue;
    Octets ulpdu(v.octets.begin() + 2,
                 v.octets.begin() + 2 + static_cast<long>(v.field("ulpdu_len")));
    EXPECT_EQ(test::to_hex(test::fpdu(ulpdu, v.id != "V30-send5-nocrc")), test::to_hex(v.octets))
        << v.id;
  }
}

// Conformance 1.3, MF-14: EMSS of Ethernet, with timestamps, IPv6, jumbo frames, loopback.
TEST(Framing, MulpduTable) {
  EXPECT_EQ(mulpdu(1460, false), 1454u);
  EXPECT_EQ(mulpdu(1448, false), 1442u);
  EXPECT_EQ(mulpdu(1440, false), 1434u);
  EXPECT_EQ(mulpdu(8948, false), 8942u);
  EXPECT_EQ(mulpdu(65483, false), 64768u);
  EXPECT_EQ(mulpdu(1460, true), 1442u);
  EXPECT_EQ(mulpdu(1448, true), 1430u);
  EXPECT_EQ(mulpdu(1440, true), 1422u);
  EXPECT_EQ(mulpdu(8948, true), 8870u);
  EXPECT_EQ(mulpdu(65483, true), 64768u);
}

// MF-12, MF-16: never below 128 nor above 64768, and the FPDU fits wherever that is possible.
TEST(Framing, MulpduStaysInItsLimits) {
  for (uint32_t emss = 0; emss <= 70000; emss++) {
    uint32_t plain = mulpdu(emss, false);
    ASSERT_GE(plain, kMinMulpdu);
    ASSERT_LE(plain, kMaxMulpdu);
    if (plain > kMinMulpdu) {
      ASSERT_LE(fpdu_size(plain), emss) << emss;
    }
    uint32_t marked = mulpdu(emss, true);
    ASSERT_GE(marked, kMinMulpdu);
    ASSERT_LE(marked, plain);
    if (marked > kMinMulpdu) {
      ASSERT_LE(fpdu_size(marked) + 4 * ((emss + 511) / 512), emss) << emss;
    }
  }
  EXPECT_EQ(mulpdu(100, false), 128u);
  EXPECT_EQ(mulpdu(0xffffffff, false), 64768u);
}

}  // namespace
}  // namespace uiw::mpa
