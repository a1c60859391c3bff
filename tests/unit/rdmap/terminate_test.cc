// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rdmap/terminate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/vectors.h"

namespace uiw::rdmap {
namespace {

using core::TermCode;
using test::concat;
using test::from_hex;
using test::Octets;

constexpr size_t kBodyOffset = 20;  // in an FPDU: length 2, DDP header 18

Octets body_of(const test::Vector& v) {
  auto begin = v.octets.begin() + kBodyOffset;
  return Octets(begin, begin + static_cast<long>(v.field("ulpdu_len")) - 18);
}

// Decodes from a heap block of exactly this size, so that AddressSanitizer sees a read beyond it.
bool decode_exactly(const Octets& body, Terminate& out) {
  Octets copy(body);
  copy.shrink_to_fit();
  return decode(copy, out);
}

Octets encoded(const Terminate& t) {
  Octets out(kMaxTerminateBody, 0xee);
  uint32_t size = encode(out.data(), t);
  for (size_t i = size; i < out.size(); i++)
    EXPECT_EQ(out[i], 0xee) << "wrote beyond the body at " << i;
  out.resize(size);
  return out;
}

TEST(Terminate, DecodesAndEncodesEveryVector) {
  int seen = 0;
  for (const auto& v : test::vectors()) {
    if (!v.has("ecode")) continue;
    SCOPED_TRACE(v.id);
    seen++;
    Octets body = body_of(v);
    Terminate t;
    ASSERT_TRUE(decode_exactly(body, t));
    EXPECT_EQ(layer_of(t.code), v.field("layer"));
    EXPECT_EQ(etype_of(t.code), v.field("etype"));
    EXPECT_EQ(code_of(t.code), v.field("ecode"));
    EXPECT_EQ(t.has_length, v.field("M") == 1);
    EXPECT_EQ(t.has_ddp_header, v.field("D") == 1);
    EXPECT_EQ(t.has_read_header, v.field("R") == 1);
    EXPECT_FALSE(t.siw_layout);
    EXPECT_EQ(test::to_hex(encoded(t)), test::to_hex(body));
  }
  EXPECT_EQ(seen, 5);
}

TEST(Terminate, EchoesTheHeadersOfTheOffendingMessage) {
  Terminate t;
  ASSERT_TRUE(decode_exactly(body_of(test::vector("V26-term-rdmap-prot")), t));
  const Octets& request = test::vector("V25-read-req-bad").octets;
  EXPECT_EQ(t.code, TermCode::kRemoteInvalidStag);
  EXPECT_EQ(t.ddp_segment_length, 46);
  ASSERT_EQ(t.ddp_header_size, 18u);
  EXPECT_EQ(test::to_hex(t.ddp_header), test::to_hex({request.data() + 2, 18}));
  EXPECT_EQ(test::to_hex(t.read_header), test::to_hex({request.data() + 20, 28}));

  ASSERT_TRUE(decode_exactly(body_of(test::vector("V20-term-ddp-stag")), t));
  EXPECT_EQ(t.code, TermCode::kTaggedInvalidStag);
  EXPECT_EQ(t.ddp_segment_length, 128);
  ASSERT_EQ(t.ddp_header_size, 14u);
  EXPECT_EQ(test::to_hex({t.ddp_header, 14}),
            test::to_hex({test::vector("V05a-write-seg1").octets.data() + 2, 14}));
}

// The size of each part is all or nothing; what was complete before the cut is kept.
TEST(Terminate, YieldsWhatIsThereAtEveryTruncation) {
  for (const char* id :
       {"V20-term-ddp-stag", "V26-term-rdmap-prot", "V27-term-llp-crc", "V33-term-atomic-align"}) {
    const test::Vector& v = test::vector(id);
    Octets body = body_of(v);
    size_t header_size = v.field("D") == 0 ? 0 : body[6] & 0x80 ? 14 : 18;
    for (size_t size = 0; size < body.size(); size++) {
      SCOPED_TRACE(testing::Message() << id << " cut to " << size);
      Terminate t;
      EXPECT_FALSE(decode_exactly(Octets(body.begin(), body.begin() + static_cast<long>(size)), t));
      if (size >= 3) {
        EXPECT_EQ(code_of(t.code), v.field("ecode"));
      }
      EXPECT_EQ(t.has_length, size >= 6);
      EXPECT_EQ(t.has_ddp_header, size >= 6 + header_size);
      EXPECT_EQ(t.ddp_header_size, t.has_ddp_header ? header_size : 0);
      EXPECT_FALSE(t.has_read_header);
    }
  }
}

// Conformance 1.11 A2: octets beyond what the flags announce are not looked at.
TEST(Terminate, IgnoresTrailingOctets) {
  for (const auto& v : test::vectors()) {
    if (!v.has("ecode")) continue;
    Terminate t;
    EXPECT_TRUE(decode_exactly(concat(body_of(v), Octets(9, 0xab)), t)) << v.id;
    EXPECT_EQ(test::to_hex(encoded(t)), test::to_hex(body_of(v))) << v.id;
  }
}

// TE-05: reserved bits are 0 on send and not looked at on receive.
TEST(Terminate, IgnoresReservedBits) {
  Octets body = body_of(test::vector("V20-term-ddp-stag"));
  body[2] |= 0x1f;
  body[3] = 0xff;
  Terminate t;
  ASSERT_TRUE(decode_exactly(body, t));
  EXPECT_EQ(t.code, TermCode::kTaggedInvalidStag);
  EXPECT_FALSE(t.siw_layout);
  EXPECT_EQ(test::to_hex(encoded(t)), test::to_hex(body_of(test::vector("V20-term-ddp-stag"))));
}

// RFC 5040 4.8: the length is there whenever D is set, whatever M says.
TEST(Terminate, FindsTheHeaderWithoutTheLengthFlag) {
  Octets body = body_of(test::vector("V20-term-ddp-stag"));
  body[2] = 0x40;
  Terminate t;
  ASSERT_TRUE(decode_exactly(body, t));
  ASSERT_TRUE(t.has_ddp_header);
  EXPECT_EQ(t.ddp_header[0], 0x81);
}

TEST(Terminate, DoesNotGuessAReadRequestWithoutItsDdpHeader) {
  for (const char* hex : {"01002000", "0100a000002e"}) {
    Terminate t;
    EXPECT_FALSE(decode_exactly(concat(from_hex(hex), Octets(28, 0x77)), t));
    EXPECT_FALSE(t.has_ddp_header);
    EXPECT_FALSE(t.has_read_header);
    EXPECT_EQ(t.code, TermCode::kRemoteInvalidStag);
  }
}

// TE-18: nibbles of octet 0 swapped, M/D/R in bits 0 to 2 of octet 2.
TEST(Terminate, ReadsSiwLayout) {
  struct Row {
    const char* control;
    TermCode code;
    bool length, ddp_header, read_header;
  };
  const Row rows[] = {
      {"02020000", TermCode::kMpaCrc, false, false, false},
      {"02030000", TermCode::kMpaMarker, false, false, false},
      {"02040000", TermCode::kMpaStartupFrame, false, false, false},
      {"21060000", TermCode::kUntaggedInvalidVersion, false, false, false},
      {"11010300", TermCode::kTaggedBounds, true, true, false},
      {"21020300", TermCode::kUntaggedNoBuffer, true, true, false},
      {"21040300", TermCode::kUntaggedInvalidMo, true, true, false},
      {"10020700", TermCode::kRemoteAccess, true, true, true},
      {"20090300", TermCode::kOperationCannotInvalidate, true, true, false},
  };
  Octets tail =
      concat(from_hex("0010"), test::untagged(1, 1, 9, 0, test::read_request(1, 2, 3, 4, 5)));
  for (const Row& row : rows) {
    SCOPED_TRACE(row.control);
    Terminate t;
    ASSERT_TRUE(decode_exactly(concat(from_hex(row.control), tail), t));
    EXPECT_TRUE(t.siw_layout);
    EXPECT_EQ(t.code, row.code);
    EXPECT_EQ(t.has_length, row.length);
    EXPECT_EQ(t.has_ddp_header, row.ddp_header);
    EXPECT_EQ(t.has_read_header, row.read_header);
    if (row.ddp_header) {
      EXPECT_EQ(t.ddp_header[13], 9) << "MSN of the echoed header";
    }
    if (row.read_header) {
      EXPECT_EQ(t.read_header[27], 5) << "source TO of the echoed Read Request";
    }
  }
  Terminate t;
  ASSERT_TRUE(decode_exactly(Octets(test::negative("N50").octets.begin() + kBodyOffset,
                                    test::negative("N50").octets.begin() + kBodyOffset + 4),
                             t));
  EXPECT_EQ(t.code, TermCode::kMpaCrc);
}

// Where both orders make sense, or neither does, the RFC's is taken.
TEST(Terminate, PrefersTheRfcsOrder) {
  struct Row {
    const char* body;
    uint16_t code;
  };
  const Row rows[] = {
      {"20020000", 0x2002},                        // MPA CRC; swapped 0x0202 does not exist
      {"20020100", 0x2002},                        // ... with a reserved bit that siw uses
      {"20050000", 0x2005},                        // swapped 0x0205 exists, too
      {"00000000", 0x0000}, {"0042ff00", 0x0042},  // any code goes with a local catastrophic error
      {"f5ff0000", 0xf5ff},                        // TE-17: nothing anyone defines
  };
  for (const Row& row : rows) {
    Terminate t;
    decode_exactly(concat(from_hex(row.body), Octets(52, 0)), t);
    EXPECT_EQ(static_cast<uint16_t>(t.code), row.code) << row.body;
    EXPECT_FALSE(t.siw_layout) << row.body;
  }
}

TEST(Terminate, ReadsTheUndefined0200AsInvalidStag) {
  Terminate t;
  ASSERT_TRUE(decode_exactly(from_hex("02000000"), t));
  EXPECT_EQ(t.code, TermCode::kRemoteInvalidStag);
}

// Every control word with every length: never an inconsistent result, and what it yields encodes.
TEST(Terminate, SurvivesEveryFlagCombination) {
  for (int octet0 = 0; octet0 < 256; octet0 += 3) {
    for (int octet2 = 0; octet2 < 256; octet2++) {
      for (size_t size :
           {0u, 1u, 3u, 4u, 5u, 6u, 7u, 19u, 20u, 23u, 24u, 47u, 48u, 51u, 52u, 60u}) {
        for (uint8_t fill : {0x00, 0xff}) {
          Octets body(size, fill);
          const uint8_t control[3] = {static_cast<uint8_t>(octet0), 1,
                                      static_cast<uint8_t>(octet2)};
          std::copy_n(control, std::min<size_t>(size, 3), body.begin());
          Terminate t;
          bool whole = decode_exactly(body, t);
          ASSERT_TRUE(!t.has_read_header || t.has_ddp_header);
          ASSERT_TRUE(!t.has_ddp_header || t.has_length);
          ASSERT_EQ(t.ddp_header_size, t.has_ddp_header ? (fill & 0x80 ? 14u : 18u) : 0u);
          ASSERT_LE(encoded(t).size(), std::max<size_t>(size, 4));
          if (size < 4) {
            ASSERT_FALSE(whole);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace uiw::rdmap
