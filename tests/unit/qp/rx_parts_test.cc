// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// Large segments without CRC, which are placed as they come or received where they belong. What
// ordinary segments have to do they have to do as well: tests/sim runs everything with both.
#include <gtest/gtest.h>

#include "support/direct_placement.h"
#include "support/scene.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

constexpr size_t kSize = 40001;  // padded

Octets large_write(const Buffer& target, const Octets& payload) {
  return fpdu(tagged(0, target.stag(), target.start(), payload), false);
}

TEST(RxParts, AWriteIsPlacedAsItComes) {
  Machine m({.crc = false});
  Buffer target(m.memory, kSize);
  const Octets content = pattern(kSize), octets = large_write(target, content);
  ASSERT_EQ(m.feed({octets.data(), 1016}), RxStatus::kOk);
  EXPECT_TRUE(std::equal(content.begin(), content.begin() + 1000, target.data()));
  EXPECT_EQ(target.data()[1000], 0);
  EXPECT_FALSE(m.rx().at_boundary());
  ASSERT_TRUE(m.rx().may_place_directly());
  ASSERT_EQ(receive_directly(m.rx(), {octets.data() + 1016, octets.size() - 1017}), RxStatus::kOk);
  EXPECT_TRUE(target.content() == content);
  EXPECT_FALSE(m.rx().at_boundary());  // an octet of the CRC field is missing
  ASSERT_EQ(m.feed({octets.data() + octets.size() - 1, 1}), RxStatus::kOk);
  EXPECT_TRUE(m.rx().at_boundary());
}

TEST(RxParts, WithCrcNothingIsPlacedUnverified) {
  Machine m({.crc = true});
  Buffer target(m.memory, kSize);
  Octets octets = fpdu(tagged(0, target.stag(), target.start(), pattern(kSize)));
  octets.back() ^= 1;
  ASSERT_EQ(m.feed({octets.data(), octets.size() - 1}), RxStatus::kOk);
  EXPECT_FALSE(m.rx().may_place_directly());
  EXPECT_EQ(m.feed({octets.data() + octets.size() - 1, 1}), RxStatus::kFault);
  EXPECT_TRUE(target.content() == Octets(kSize));
}

// What begins in one receive and ends in the next is copied once more.
TEST(RxParts, AReceiveIsToEndWhereAnFpduDoes) {
  Machine m({.crc = true});
  Buffer target(m.memory, kSize);
  constexpr size_t kRoom = 256 << 10;
  const Octets octets = fpdu(tagged(0, target.stag(), target.start(), pattern(kSize)));
  EXPECT_EQ(m.rx().good_size(kRoom), kRoom);  // nothing is known
  ASSERT_EQ(m.feed(octets), RxStatus::kOk);
  EXPECT_EQ(m.rx().good_size(kRoom), kRoom / octets.size() * octets.size());
  ASSERT_EQ(m.feed({octets.data(), 1}), RxStatus::kOk);
  EXPECT_EQ(m.rx().good_size(kRoom), kRoom);  // nor is its size
  ASSERT_EQ(m.feed({octets.data() + 1, 99}), RxStatus::kOk);
  const size_t rest = octets.size() - 100;
  EXPECT_EQ(m.rx().good_size(kRoom), rest + (kRoom - rest) / octets.size() * octets.size());
  EXPECT_EQ(m.rx().good_size(rest + 1), rest);
  EXPECT_EQ(m.rx().good_size(rest - 1), rest - 1);
  ASSERT_EQ(m.feed({octets.data() + 100, rest}), RxStatus::kOk);
  ASSERT_EQ(m.feed(fpdu(tagged(0, target.stag(), target.start(), pattern(8)))), RxStatus::kOk);
  EXPECT_EQ(m.rx().good_size(kRoom), kRoom);  // small ones are not worth it
}

// RFC 5044 7.1.2(4): valid is what is there as a whole.
TEST(RxParts, TheFirstFpduCountsWhenItIsWhole) {
  Machine m({.initiator = false, .crc = false});
  Buffer target(m.memory, kSize);
  const Octets octets = large_write(target, pattern(kSize));
  ASSERT_EQ(m.feed({octets.data(), octets.size() - 1}), RxStatus::kOk);
  EXPECT_FALSE(m.connection->shared.first_fpdu.load());
  EXPECT_FALSE(m.rx().take_news());
  ASSERT_EQ(m.feed({octets.data() + octets.size() - 1, 1}), RxStatus::kOk);
  EXPECT_TRUE(m.connection->shared.first_fpdu.load());
  EXPECT_TRUE(m.rx().take_news());
}

TEST(RxParts, HeadersMayComeInPieces) {
  for (size_t head = 1; head <= 40; ++head) {
    SCOPED_TRACE(head);
    Machine m({.crc = false});
    Buffer to(m.memory, kSize);
    m.receive(RecvWr({to.sge(0, 15000), to.sge(15000, 25001)}, 7));
    const Octets content = pattern(kSize), octets = fpdu(untagged(3, 0, 1, 0, content), false);
    ASSERT_EQ(m.feed({octets.data(), head}), RxStatus::kOk);
    ASSERT_EQ(m.feed({octets.data() + head, 25}), RxStatus::kOk);
    ASSERT_TRUE(m.rx().may_place_directly());
    ASSERT_EQ(receive_directly(m.rx(), {octets.data() + head + 25, octets.size() - head - 25}),
              RxStatus::kOk);
    const std::vector<ibv_wc> got = m.received();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].byte_len, kSize);
    EXPECT_EQ(got[0].status, IBV_WC_SUCCESS);
    EXPECT_TRUE(to.content() == content);
    EXPECT_TRUE(m.rx().at_boundary());
  }
}

TEST(RxParts, ASendWaitsForItsReceive) {
  for (size_t there : {25u, 5000u}) {
    Machine m({.crc = false, .wait_for_receive = true});
    Buffer to(m.memory, kSize);
    const Octets content = pattern(kSize), octets = fpdu(untagged(3, 0, 1, 0, content), false);
    ASSERT_EQ(m.feed({octets.data(), 10}), RxStatus::kOk);
    ASSERT_EQ(m.feed({octets.data() + 10, there - 10}), RxStatus::kWantReceive);
    EXPECT_FALSE(m.rx().may_place_directly());
    m.receive(RecvWr({to.sge()}, 7));
    ASSERT_EQ(m.rx().resume(), RxStatus::kOk);
    ASSERT_EQ(receive_directly(m.rx(), {octets.data() + there, octets.size() - there}),
              RxStatus::kOk);
    EXPECT_EQ(m.received().size(), 1u);
    EXPECT_TRUE(to.content() == content);
  }
}

TEST(RxParts, MemoryMayGoAwayInBetween) {
  Machine m({.crc = false});
  Buffer target(m.memory, kSize);
  const Octets octets = large_write(target, pattern(kSize));
  const uint32_t stag = target.stag();
  ASSERT_EQ(m.feed({octets.data(), 5000}), RxStatus::kOk);
  target.deregister();
  qp::DirectPlacement placement;
  EXPECT_FALSE(m.rx().plan_placement(placement));
  EXPECT_EQ(m.feed({octets.data() + 5000, 100}), RxStatus::kFault);
  EXPECT_EQ(static_cast<uint16_t>(m.rx().fault().terminate.code), 0x1100);
  // What is echoed is the segment as it came.
  EXPECT_EQ(m.rx().fault().terminate.ddp_segment_length, kSize + 14);
  EXPECT_EQ(to_hex({m.rx().fault().terminate.ddp_header, 14}), to_hex({octets.data() + 2, 14}));
  EXPECT_NE(stag, 0u);
}

TEST(RxParts, AFaultIsFoundByTheHeader) {
  Machine m({.crc = false});
  Buffer target(m.memory, kSize - 1);
  const Octets octets = large_write(target, pattern(kSize));
  EXPECT_EQ(m.feed({octets.data(), 20}), RxStatus::kFault);
  EXPECT_EQ(static_cast<uint16_t>(m.rx().fault().terminate.code), 0x1101);
}

}  // namespace
}  // namespace uiw::test
