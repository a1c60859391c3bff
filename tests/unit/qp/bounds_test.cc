// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// How far a peer can reach into registered memory: to the octet, for every offset and length around
// the ends of a region, for Writes and Reads (RFC 5041 7.1, RFC 5040 7.2, RFC 5042 6.2.1, 6.3.1).
#include <gtest/gtest.h>

#include "support/scene.h"
#include "support/segments.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

constexpr size_t kSize = 24, kWall = 16;

uint16_t code_of(Machine& m) {
  return static_cast<uint16_t>(m.rx().fault().terminate.code);
}

// A region in the middle of memory that is not registered.
struct Walled {
  Walled(mem::Table& its_table, uint64_t its_start, uint32_t access = kAllAccess, uint32_t pd = kPd)
      : table(its_table), start(its_start), octets(pattern(kSize + 2 * kWall)) {
    stag = *table.add(pd, octets.data() + kWall, start, kSize, access, kMaxRegions);
  }
  ~Walled() { table.remove(stag); }
  bool holds(uint64_t to, uint64_t length) const {
    // In twice the width, so that nothing here can wrap.
    using Wide = unsigned __int128;
    return to >= start && Wide{to} + length <= Wide{start} + kSize;
  }
  mem::Table& table;
  const uint64_t start;
  Octets octets;
  uint32_t stag = 0;
};

bool wraps(uint64_t to, uint64_t length) {
  return to + length < to;
}

// Every place and length from before the region to behind it; regions that begin at 0, somewhere,
// and so near the end of all offsets that what lies behind them wraps.
template <class Try>
void try_all_around(Try&& attempt) {
  for (uint64_t start :
       {uint64_t{0}, uint64_t{0x1000}, uint64_t{0xffffffff} - 10, ~uint64_t{0} - kSize - 3}) {
    for (uint64_t offset = 0; offset < kSize + 16; ++offset) {
      for (uint64_t length = 1; length <= kSize + 8; ++length)
        attempt(start, start - 8 + offset, length);
    }
  }
}

TEST(Bounds, OfAWrite) {
  try_all_around([](uint64_t start, uint64_t to, uint64_t length) {
    Machine m;
    Walled region(m.memory, start);
    const Octets payload = pattern(length, 99);
    const RxStatus status = m.feed(fpdu(tagged(0, region.stag, to, payload)));
    Octets expected = pattern(kSize + 2 * kWall);
    if (region.holds(to, length)) {
      ASSERT_EQ(status, RxStatus::kOk);
      std::copy(payload.begin(), payload.end(),
                expected.begin() + static_cast<std::ptrdiff_t>(kWall + to - start));
    } else {
      ASSERT_EQ(status, RxStatus::kFault) << start << " " << to << " " << length;
      ASSERT_EQ(code_of(m), wraps(to, length) ? 0x1103 : 0x1101);
    }
    ASSERT_TRUE(region.octets == expected);
  });
}

TEST(Bounds, OfARead) {
  try_all_around([](uint64_t start, uint64_t to, uint64_t length) {
    Machine m({.initiator = false});
    Walled region(m.memory, start);
    const Octets asked = read_request(5, 6, static_cast<uint32_t>(length), region.stag, to);
    const RxStatus status = m.feed(fpdu(untagged(1, 1, 1, 0, asked)));
    if (region.holds(to, length)) {
      ASSERT_EQ(status, RxStatus::kOk);
      const std::span<const uint8_t> content{region.octets.data() + kWall + (to - start), length};
      ASSERT_EQ(to_hex(m.transmit()), to_hex(fpdu(tagged(2, 5, 6, content))));
    } else {
      ASSERT_EQ(status, RxStatus::kFault) << start << " " << to << " " << length;
      ASSERT_EQ(code_of(m), wraps(to, length) ? 0x0104 : 0x0101);
      ASSERT_TRUE(m.transmit().empty());
    }
  });
}

// Of a Write that begins well each segment is checked by itself.
TEST(Bounds, OfEachSegment) {
  for (size_t first = 1; first < kSize; ++first) {
    for (size_t second : {kSize - first, kSize - first + 1, size_t{100}}) {
      Machine m;
      Walled region(m.memory, 0x1000);
      const Octets payload = pattern(first + second, 7);
      const std::span<const uint8_t> all(payload);
      ASSERT_EQ(m.feed(fpdu(tagged(0, region.stag, 0x1000, all.first(first), false))),
                RxStatus::kOk);
      const RxStatus status =
          m.feed(fpdu(tagged(0, region.stag, 0x1000 + first, all.subspan(first))));
      const bool fits = first + second == kSize;
      EXPECT_EQ(status, fits ? RxStatus::kOk : RxStatus::kFault);
      if (!fits) {
        EXPECT_EQ(code_of(m), 0x1101);
      }
      Octets expected = pattern(kSize + 2 * kWall);
      std::copy_n(payload.begin(), fits ? kSize : first, expected.begin() + kWall);
      EXPECT_TRUE(region.octets == expected);
    }
  }
}

// A Read names up to 2^32 - 1 octets; the sum is made in 64 bits.
TEST(Bounds, OfReadsOfHugeSizes) {
  for (uint64_t to : {uint64_t{0x1000}, uint64_t{0x1000} + kSize - 1, uint64_t{0xfffff000},
                      ~uint64_t{0} - 0xfffffffe, ~uint64_t{0} - 0xfffffffd, ~uint64_t{0}}) {
    for (uint32_t size : {0x80000000u, 0xfffffff0u, 0xffffffffu}) {
      Machine m({.initiator = false});
      Walled region(m.memory, 0x1000);
      EXPECT_EQ(m.feed(fpdu(untagged(1, 1, 1, 0, read_request(5, 6, size, region.stag, to)))),
                RxStatus::kFault);
      EXPECT_EQ(code_of(m), wraps(to, size) ? 0x0104 : 0x0101);
      EXPECT_TRUE(m.transmit().empty());
    }
  }
}

// Each right is needed for its own use and none stands for another (RFC 5042 6.3.5); domains
// likewise.
TEST(Bounds, NeedTheRightAndTheDomain) {
  for (uint32_t access = 0; access < 8; ++access) {
    for (uint32_t pd : {kPd, kOtherPd}) {
      SCOPED_TRACE(std::to_string(access) + " domain " + std::to_string(pd));
      Machine writer, reader({.initiator = false});
      Walled target(writer.memory, 0x1000, access, pd), source(reader.memory, 0x1000, access, pd);
      const RxStatus write = writer.feed(fpdu(tagged(0, target.stag, 0x1000, pattern(8, 9))));
      const RxStatus read =
          reader.feed(fpdu(untagged(1, 1, 1, 0, read_request(5, 6, 8, source.stag, 0x1000))));
      const bool may_write = pd == kPd && access & mem::kRemoteWrite,
                 may_read = pd == kPd && access & mem::kRemoteRead;
      EXPECT_EQ(write, may_write ? RxStatus::kOk : RxStatus::kFault);
      EXPECT_EQ(read, may_read ? RxStatus::kOk : RxStatus::kFault);
      if (!may_write) {
        EXPECT_EQ(code_of(writer), pd == kPd ? 0x1100 : 0x1102);
        EXPECT_TRUE(target.octets == pattern(kSize + 2 * kWall));
      }
      if (!may_read) {
        EXPECT_EQ(code_of(reader), pd == kPd ? 0x0102 : 0x0103);
        EXPECT_TRUE(reader.transmit().empty());
      }
    }
  }
}

// What was deregistered is gone, also for a message that is half way through (RFC 5042 6.2.2).
TEST(Bounds, EndWithTheRegistration) {
  Machine writer, reader({.initiator = false});
  Buffer target(writer.memory, 64), source(reader.memory, pattern(64));
  const uint32_t target_stag = target.stag(), source_stag = source.stag();
  ASSERT_EQ(writer.feed(fpdu(tagged(0, target_stag, target.start(), pattern(8), false))),
            RxStatus::kOk);
  target.deregister();
  source.deregister();
  EXPECT_EQ(writer.feed(fpdu(tagged(0, target_stag, target.start() + 8, pattern(8)))),
            RxStatus::kFault);
  EXPECT_EQ(code_of(writer), 0x1100);
  Octets expected = pattern(8);
  expected.resize(64);
  EXPECT_TRUE(target.content() == expected);
  const Octets asked = read_request(5, 6, 8, source_stag, source.start());
  EXPECT_EQ(reader.feed(fpdu(untagged(1, 1, 1, 0, asked))), RxStatus::kFault);
  EXPECT_EQ(code_of(reader), 0x0100);
  EXPECT_TRUE(reader.transmit().empty());
}

// RFC 5041 5.2, 5040 5.2.1: without data nothing is looked at, whoever's memory it is.
TEST(Bounds, AreNotLookedAtWithoutData) {
  for (uint64_t to : {uint64_t{0}, uint64_t{0x1000} + kSize, ~uint64_t{0}}) {
    Machine m({.initiator = false});
    Walled foreign(m.memory, 0x1000, 0, kOtherPd);
    uint32_t msn = 0;
    for (uint32_t stag : {0u, 1u, 0xdeadbeefu, foreign.stag}) {
      EXPECT_EQ(m.feed(fpdu(tagged(0, stag, to, {}))), RxStatus::kOk);
      EXPECT_EQ(m.feed(fpdu(untagged(1, 1, ++msn, 0, read_request(7, 8, 0, stag, to)))),
                RxStatus::kOk);
      EXPECT_EQ(to_hex(m.transmit()), to_hex(fpdu(tagged(2, 7, 8, {}))));
    }
  }
}

}  // namespace
}  // namespace uiw::test
