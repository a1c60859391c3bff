// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mpa/startup_frame.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/vectors.h"

namespace uiw::mpa {
namespace {

using test::concat;
using test::Octets;

struct Parsed {
  ParseStatus status;
  StartupFrame frame;
  uint32_t consumed = 0;
};

// Parses from a heap block of exactly this size, so that AddressSanitizer sees a read beyond it.
Parsed parse_exactly(const Octets& octets, FrameKind kind) {
  Octets copy(octets);
  copy.shrink_to_fit();
  Parsed parsed{};
  parsed.status = parse(copy, kind, parsed.frame, parsed.consumed);
  return parsed;
}

Octets encoded(const StartupFrame& frame) {
  Octets out(kMaxStartupFrame, 0xee);
  uint32_t size = encode(out.data(), frame);
  for (size_t i = size; i < out.size(); i++)
    EXPECT_EQ(out[i], 0xee) << "wrote beyond the frame at " << i;
  out.resize(size);
  return out;
}

bool is_startup(const test::Vector& v) {
  return v.has("rev");
}
FrameKind kind_of(const Octets& octets) {
  return octets[9] == 'q' ? FrameKind::kRequest : FrameKind::kReply;
}

TEST(StartupFrame, DecodesAndEncodesEveryVector) {
  int seen = 0;
  for (const auto& v : test::vectors()) {
    if (!is_startup(v)) continue;
    SCOPED_TRACE(v.id);
    seen++;
    Parsed parsed = parse_exactly(v.octets, kind_of(v.octets));
    ASSERT_EQ(parsed.status, ParseStatus::kComplete);
    EXPECT_EQ(parsed.consumed, v.octets.size());
    EXPECT_EQ(parsed.frame.revision, v.field("rev"));
    EXPECT_EQ(parsed.frame.crc, v.field("C") == 1);
    if (v.has("M")) {
      EXPECT_EQ(parsed.frame.markers, v.field("M") == 1);
    }
    if (v.has("R")) {
      EXPECT_EQ(parsed.frame.reject, v.field("R") == 1);
    }
    EXPECT_EQ(parsed.frame.private_size + (parsed.frame.enhanced ? 4u : 0u), v.field("pd_length"));
    EXPECT_EQ(test::to_hex(encoded(parsed.frame)), test::to_hex(v.octets));
  }
  EXPECT_EQ(seen, 7);
}

TEST(StartupFrame, DecodesTheEnhancedBlock) {
  const Octets& octets = test::vector("V21-mpa-v2-req").octets;
  Parsed parsed = parse_exactly(octets, FrameKind::kRequest);
  ASSERT_EQ(parsed.status, ParseStatus::kComplete);
  ASSERT_TRUE(parsed.frame.enhanced);
  EXPECT_TRUE(parsed.frame.enhanced->peer_to_peer);
  EXPECT_FALSE(parsed.frame.enhanced->rtr_send);
  EXPECT_TRUE(parsed.frame.enhanced->rtr_write);
  EXPECT_TRUE(parsed.frame.enhanced->rtr_read);
  EXPECT_EQ(parsed.frame.enhanced->ird, 16);
  EXPECT_EQ(parsed.frame.enhanced->ord, 8);
  ASSERT_EQ(parsed.frame.private_size, 4);
  EXPECT_EQ(std::memcmp(parsed.frame.private_data, "abcd", 4), 0);
}

// RFC 6581 9: every flag at its own place, depths in network order and 14 bits wide.
TEST(StartupFrame, PutsEachEnhancedFieldWhereItBelongs) {
  struct Row {
    Enhanced block;
    const char* hex;
  };
  const Row rows[] = {
      {{true, false, false, false, 0, 0}, "80000000"},
      {{false, true, false, false, 0, 0}, "40000000"},
      {{false, false, true, false, 0, 0}, "00008000"},
      {{false, false, false, true, 0, 0}, "00004000"},
      {{false, false, false, false, 0x1234, 0}, "12340000"},
      {{false, false, false, false, 0, 0x3fff}, "00003fff"},
      {{true, true, true, true, 0x3fff, 1}, "ffffc001"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.hex);
    StartupFrame frame;
    frame.enhanced = row.block;
    Octets octets = encoded(frame);
    EXPECT_EQ(test::to_hex(std::span(octets).subspan(20)), row.hex);
    Parsed parsed = parse_exactly(octets, FrameKind::kRequest);
    ASSERT_EQ(parsed.status, ParseStatus::kComplete);
    EXPECT_EQ(encoded(parsed.frame), octets);
  }
}

// MS-11: one octet at a time, and any other cut.
TEST(StartupFrame, AsksForMoreAtEveryTruncation) {
  for (const auto& v : test::vectors()) {
    if (!is_startup(v)) continue;
    SCOPED_TRACE(v.id);
    for (size_t size = 0; size < v.octets.size(); size++) {
      Octets part(v.octets.begin(), v.octets.begin() + static_cast<long>(size));
      EXPECT_EQ(parse_exactly(part, kind_of(v.octets)).status, ParseStatus::kNeedMore) << size;
    }
  }
}

// MS-12, MS-13: what follows the frame is the caller's.
TEST(StartupFrame, LeavesWhatFollowsTheFrame) {
  for (const auto& v : test::vectors()) {
    if (!is_startup(v)) continue;
    SCOPED_TRACE(v.id);
    Parsed parsed =
        parse_exactly(concat(v.octets, test::of_text("\x00\x12 behind")), kind_of(v.octets));
    ASSERT_EQ(parsed.status, ParseStatus::kComplete);
    EXPECT_EQ(parsed.consumed, v.octets.size());
    EXPECT_EQ(test::to_hex(encoded(parsed.frame)), test::to_hex(v.octets));
  }
}

// MS-03, MS-04: the key is compared exactly, and reported as soon as one octet differs.
TEST(StartupFrame, RefusesAnyChangedKeyOctetAtOnce) {
  for (const char* id : {"V21-mpa-v2-req", "V22-mpa-v2-rep"}) {
    const Octets& good = test::vector(id).octets;
    for (size_t i = 0; i < 16; i++) {
      for (int bit = 0; bit < 8; bit++) {
        Octets bad(good);
        bad[i] = static_cast<uint8_t>(bad[i] ^ 1 << bit);
        EXPECT_EQ(parse_exactly(bad, kind_of(good)).status, ParseStatus::kBadKey)
            << id << " octet " << i;
        bad.resize(i + 1);
        EXPECT_EQ(parse_exactly(bad, kind_of(good)).status, ParseStatus::kBadKey)
            << id << " octet " << i;
      }
    }
  }
}

// MS-05: two initiators, or two responders.
TEST(StartupFrame, RefusesTheOtherKindOfFrame) {
  EXPECT_EQ(parse_exactly(test::vector("V01-mpa-v1-req").octets, FrameKind::kReply).status,
            ParseStatus::kBadKey);
  EXPECT_EQ(parse_exactly(test::vector("V02-mpa-v1-rep").octets, FrameKind::kRequest).status,
            ParseStatus::kBadKey);
}

// MS-16.
TEST(StartupFrame, RefusesRevisionsItDoesNotSpeak) {
  for (int revision = 0; revision < 256; revision++) {
    Octets octets = test::mpa_request(0x40, static_cast<uint8_t>(revision), {});
    ParseStatus expected =
        revision == 1 || revision == 2 ? ParseStatus::kComplete : ParseStatus::kBadRevision;
    EXPECT_EQ(parse_exactly(octets, FrameKind::kRequest).status, expected) << revision;
    octets.resize(18);
    if (expected == ParseStatus::kComplete) expected = ParseStatus::kNeedMore;
    EXPECT_EQ(parse_exactly(octets, FrameKind::kRequest).status, expected) << revision;
  }
}

// MS-08, MS-09: private data of 0 to 512 octets arrives exactly, more is refused from the header
// on.
TEST(StartupFrame, BoundsPrivateDataAt512Octets) {
  for (uint32_t size : {0u, 1u, 3u, 255u, 256u, 511u, 512u}) {
    SCOPED_TRACE(size);
    Octets data(size);
    for (size_t i = 0; i < size; i++) data[i] = static_cast<uint8_t>(i * 7 + 1);
    Octets octets = test::mpa_request(0, 1, data);
    Parsed parsed = parse_exactly(octets, FrameKind::kRequest);
    ASSERT_EQ(parsed.status, ParseStatus::kComplete);
    EXPECT_EQ(parsed.consumed, 20 + size);
    ASSERT_EQ(parsed.frame.private_size, size);
    EXPECT_EQ(Octets(parsed.frame.private_data, parsed.frame.private_data + size), data);
    EXPECT_EQ(encoded(parsed.frame), octets);
    octets.pop_back();
    EXPECT_EQ(parse_exactly(octets, FrameKind::kRequest).status, ParseStatus::kNeedMore);
  }
  for (uint32_t length : {513u, 1024u, 65535u}) {
    Octets octets = test::mpa_request(0, 1, {});
    octets[18] = static_cast<uint8_t>(length >> 8);
    octets[19] = static_cast<uint8_t>(length);
    EXPECT_EQ(parse_exactly(octets, FrameKind::kRequest).status, ParseStatus::kBadLength) << length;
  }
}

// ME-04, ME-06: the block is part of the 512 octets and must be there whole.
TEST(StartupFrame, CountsTheEnhancedBlockAsPrivateData) {
  for (uint32_t size = 0; size < 4; size++) {
    Octets octets = test::mpa_request(0x10, 2, Octets(size, 0));
    EXPECT_EQ(parse_exactly(octets, FrameKind::kRequest).status, ParseStatus::kBadLength) << size;
  }
  for (uint32_t size : {0u, 1u, 251u, 252u, 507u, 508u}) {
    SCOPED_TRACE(size);
    Octets octets = test::mpa_request(
        0x10, 2, concat(test::enhanced_block(0x8001, 0xc001), Octets(size, 0x5a)));
    Parsed parsed = parse_exactly(octets, FrameKind::kRequest);
    ASSERT_EQ(parsed.status, ParseStatus::kComplete);
    EXPECT_EQ(parsed.frame.private_size, size);
    EXPECT_EQ(encoded(parsed.frame), octets);
  }
  Octets octets = test::mpa_request(0x10, 2, concat(test::enhanced_block(0, 0), Octets(509, 0)));
  EXPECT_EQ(parse_exactly(octets, FrameKind::kRequest).status, ParseStatus::kBadLength);
}

// RFC 6581 6: S does not exist on revision 1; the bit is reserved there and not looked at.
TEST(StartupFrame, IgnoresTheEnhancedFlagOnRevision1) {
  Parsed parsed =
      parse_exactly(test::mpa_request(0x10, 1, test::of_text("abcdef")), FrameKind::kRequest);
  ASSERT_EQ(parsed.status, ParseStatus::kComplete);
  EXPECT_FALSE(parsed.frame.enhanced);
  EXPECT_EQ(parsed.frame.private_size, 6);
}

// MS-14, MS-15, and the private flag 0x08 of siw.
TEST(StartupFrame, IgnoresReservedBitsAndRejectInARequest) {
  Parsed parsed = parse_exactly(test::mpa_request(0x2f, 2, {}), FrameKind::kRequest);
  ASSERT_EQ(parsed.status, ParseStatus::kComplete);
  EXPECT_FALSE(parsed.frame.reject);
  EXPECT_FALSE(parsed.frame.markers);
  EXPECT_FALSE(parsed.frame.crc);
  EXPECT_EQ(encoded(parsed.frame)[16], 0);
  parsed = parse_exactly(test::mpa_reply(0xef, 2, {}), FrameKind::kReply);
  ASSERT_EQ(parsed.status, ParseStatus::kComplete);
  EXPECT_TRUE(parsed.frame.reject);
  EXPECT_TRUE(parsed.frame.markers);
  EXPECT_TRUE(parsed.frame.crc);
  EXPECT_EQ(encoded(parsed.frame)[16], 0xe0);
}

TEST(StartupFrame, DoesNotTouchItsOutputBeforeTheFrameIsComplete) {
  StartupFrame frame;
  frame.private_size = 77;
  uint32_t consumed = 99;
  Octets octets = test::mpa_request(0, 1, test::of_text("abc"));
  octets.pop_back();
  ASSERT_EQ(parse(octets, FrameKind::kRequest, frame, consumed), ParseStatus::kNeedMore);
  EXPECT_EQ(frame.private_size, 77);
  EXPECT_EQ(consumed, 99u);
}

TEST(StartupFrame, DescribesEveryStatusInItsOwnWords) {
  const ParseStatus all[] = {ParseStatus::kNeedMore, ParseStatus::kComplete, ParseStatus::kBadKey,
                             ParseStatus::kBadRevision, ParseStatus::kBadLength};
  for (ParseStatus a : all) {
    ASSERT_NE(describe(a), nullptr);
    for (ParseStatus b : all) {
      if (a != b) {
        EXPECT_STRNE(describe(a), describe(b));
      }
    }
  }
}

}  // namespace
}  // namespace uiw::mpa
