// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mpa/markers.h"

#include <gtest/gtest.h>

#include "core/crc32c.h"
#include "support/marked_stream.h"

namespace uiw::mpa {
namespace {

using test::MarkedStream;
using test::Octets;

Octets ulpdu_of(uint32_t length) {
  Octets out(length);
  for (uint32_t i = 0; i < length; ++i) out[i] = static_cast<uint8_t>(i * 5 + (i >> 8) + 1);
  return out;
}

// As Tx does it.
Octets written(const Octets& ulpdu, uint32_t position) {
  const auto length = static_cast<uint32_t>(ulpdu.size());
  Octets out(marked_size(position, fpdu_size(length)));
  MarkerWriter writer(out.data(), position);
  uint8_t octets[2];
  core::store_be16(octets, static_cast<uint16_t>(length));
  writer.put(octets, sizeof octets);
  // In pieces, so that markers fall into them and between them.
  for (uint32_t at = 0, piece = 1; at < length; piece = piece % 97 + 13) {
    const uint32_t size = std::min(piece, length - at);
    writer.put(&ulpdu[at], size);
    at += size;
  }
  constexpr uint8_t kZeros[4] = {};
  writer.put(kZeros, pad_size(length));
  writer.before_crc();
  const uint32_t crc = core::crc32c(writer.written().data(), writer.written().size());
  writer.put(&crc, sizeof crc);
  EXPECT_EQ(writer.written().size(), out.size());
  return out;
}

// MF-19, MF-20: all situations there are, at their places in the stream.
TEST(Markers, Vectors) {
  const struct {
    const char* id;
    uint32_t position;
  } rows[] = {{"V34-rfc5044-fig5", 0}, {"V35-rfc5044-fig6", 0x1ec},
              {"V36-M1", 0},           {"V36-M2", 492},
              {"V36-M3", 544},         {"V36-M4", 1024},
              {"V36-M5", 1544}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.id);
    const Octets& octets = test::vector(row.id).octets;
    const Extent extent = marked_extent(octets, row.position);
    ASSERT_TRUE(extent.whole);
    ASSERT_EQ(extent.size, octets.size());
    Octets plain(octets.size());
    EXPECT_TRUE(strip_markers(octets, row.position, plain.data()));
    const uint16_t length = core::load_be16(plain.data());
    const Octets ulpdu(plain.begin() + 2, plain.begin() + 2 + length);
    EXPECT_EQ(test::to_hex(written(ulpdu, row.position)), test::to_hex(octets));
  }
}

// Every place an FPDU can begin at, every length around the intervals.
TEST(Markers, EveryPositionAndLength) {
  for (uint32_t position = 0; position < kMarkerInterval; position += 4) {
    for (uint32_t length = 14; length < 1100; length += length < 40 ? 1 : 3) {
      const Octets ulpdu = ulpdu_of(length);
      const Octets expected = MarkedStream(position).next(ulpdu);
      const Octets octets = written(ulpdu, position);
      ASSERT_EQ(octets, expected) << position << ' ' << length;
      Octets plain(octets.size());
      ASSERT_TRUE(strip_markers(octets, position, plain.data()));
      ASSERT_TRUE(std::equal(ulpdu.begin(), ulpdu.end(), plain.begin() + 2));
    }
  }
}

TEST(Markers, LargeFpdus) {
  for (uint32_t length : {64768u, 65534u, 65535u}) {
    for (uint32_t position : {0u, 4u, 508u}) {
      const Octets ulpdu = ulpdu_of(length);
      Octets octets = written(ulpdu, position);
      ASSERT_EQ(octets, MarkedStream(position).next(ulpdu));
      ASSERT_LE(octets.size(), kMaxMarkedFpdu);
      // In place.
      ASSERT_TRUE(strip_markers(octets, position, octets.data()));
      EXPECT_TRUE(std::equal(ulpdu.begin(), ulpdu.end(), octets.begin() + 2));
    }
  }
}

TEST(Markers, TheExtentIsKnownWithTheLength) {
  for (uint32_t position = 0; position < kMarkerInterval; position += 4) {
    const Octets octets = MarkedStream(position).next(ulpdu_of(700));
    const size_t length_at = position == 0 ? 4 : 0;
    for (size_t size = 0; size <= octets.size(); ++size) {
      const Extent extent = marked_extent({octets.data(), size}, position);
      ASSERT_EQ(extent.whole, size >= length_at + 2);
      ASSERT_EQ(extent.size, extent.whole ? octets.size() : length_at + 2);
    }
  }
}

// MF-18, MF-21, MF-22.
TEST(Markers, OnlyThePointerCounts) {
  for (uint32_t position : {0u, 4u, 20u, 256u, 508u}) {
    const Octets good = MarkedStream(position).next(ulpdu_of(1500));
    Octets plain(good.size());
    for (uint32_t at = room_before_marker(position); at < good.size(); at += kMarkerInterval) {
      for (uint32_t octet = 0; octet < kMarkerSize; ++octet) {
        for (int bit = 0; bit < 8; ++bit) {
          Octets changed = good;
          changed[at + octet] ^= static_cast<uint8_t>(1 << bit);
          const bool ignored = octet < 2 || (octet == 3 && bit < 2);
          ASSERT_EQ(strip_markers(changed, position, plain.data()), ignored)
              << position << ' ' << at + octet << ' ' << bit;
        }
      }
    }
  }
}

// MF-24: a position is counted modulo 512, which 2^32 is a multiple of.
TEST(Markers, PositionsMayWrap) {
  for (uint32_t before = 4; before <= 1024; before += 4) {
    const uint32_t position = 0u - before;
    const Octets ulpdu = ulpdu_of(1200);
    ASSERT_EQ(written(ulpdu, position), MarkedStream(0x1'0000'0000 - before).next(ulpdu));
  }
}

// MF-14: an FPDU of MULPDU octets fits into a segment wherever the markers fall.
TEST(Markers, MulpduLeavesRoomForThem) {
  for (uint32_t emss = 256; emss <= 65495; emss += emss < 3000 ? 1 : 7) {
    const uint32_t octets = fpdu_size(mulpdu(emss, true));
    for (uint32_t position : {0u, 4u, 8u, 256u, 504u, 508u})
      ASSERT_LE(marked_size(position, octets), emss) << position;
  }
}

}  // namespace
}  // namespace uiw::mpa
