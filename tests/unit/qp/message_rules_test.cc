// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// What makes a Send of several segments one message, when it is delivered and how long it is
// (RFC 5041 5.3, 5.4 and 7.1).
#include <gtest/gtest.h>

#include "support/scene.h"
#include "support/segments.h"

namespace uiw::test {
namespace {

using qp::RxStatus;

uint16_t code_of(Machine& m) {
  return static_cast<uint16_t>(m.rx().fault().terminate.code);
}

// Nothing is delivered before the last segment, and everything in the order of the numbers.
TEST(MessageRules, DeliveryWaitsForTheLastSegment) {
  Machine m;
  Buffer to(m.memory, 1000), target(m.memory, 100);
  for (uint64_t id = 0; id < 2; ++id) m.receive(RecvWr({to.sge(id * 500, 500)}, id));
  const Octets message = pattern(450);
  const std::vector<Octets> segments = untagged_segments(3, 1, message, 128);
  ASSERT_EQ(segments.size(), 5u);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(m.feed(fpdu(segments[i])), RxStatus::kOk);
    EXPECT_TRUE(m.received().empty());
    EXPECT_FALSE(m.rx().at_boundary());
    // What else comes meanwhile does not deliver it.
    ASSERT_EQ(m.feed(fpdu(tagged(0, target.stag(), target.start(), pattern(20)))), RxStatus::kOk);
    EXPECT_TRUE(m.received().empty());
  }
  ASSERT_EQ(m.feed(fpdu(segments[4])), RxStatus::kOk);
  const std::vector<ibv_wc> got = m.received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].wr_id, 0u);
  EXPECT_EQ(got[0].byte_len, 450u);
  EXPECT_TRUE(std::equal(message.begin(), message.end(), to.data()));
  EXPECT_TRUE(
      std::all_of(to.data() + 450, to.data() + 1000, [](uint8_t octet) { return octet == 0; }));
}

// Of which messages more is to come, after each octet of one of each kind in two segments.
TEST(MessageRules, AMessageIsBegunUntilItsLastOctet) {
  const Octets message = pattern(200);
  Machine m;
  Buffer to(m.memory, message.size());
  m.receive(RecvWr({to.sge()}));
  m.post(SendWr(IBV_WR_RDMA_READ, {to.sge()}).to(0x1000, 0x11));
  const std::vector<Octets> asked = ulpdus_of(m.transmit());
  ASSERT_EQ(asked.size(), 1u);
  const uint32_t sink = core::load_be32(asked[0].data() + 18);
  for (const std::vector<Octets>& segments :
       {untagged_segments(3, 1, message, 128),
        tagged_segments(0, to.stag(), to.start(), message, 128),
        tagged_segments(2, sink, 0, message, 128)}) {
    Octets stream;
    for (const Octets& segment : segments) stream = concat(stream, fpdu(segment));
    for (size_t i = 0; i < stream.size(); ++i) {
      EXPECT_EQ(m.rx().mid_message(), i > 0) << i;
      ASSERT_EQ(m.feed({&stream[i], 1}), RxStatus::kOk) << i;
    }
    EXPECT_FALSE(m.rx().mid_message());
  }
}

// A last segment without payload ends the message where the one before it ended.
TEST(MessageRules, TheLastSegmentMayBeEmpty) {
  Machine m;
  Buffer to(m.memory, 10);
  m.receive(RecvWr({to.sge()}, 1));
  ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, {}, false))), RxStatus::kOk);
  ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, pattern(10), false))), RxStatus::kOk);
  ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 10, {}))), RxStatus::kOk);
  EXPECT_EQ(m.received().at(0).byte_len, 10u);
}

TEST(MessageRules, ASegmentMustContinueWhereTheLastOneEnded) {
  for (uint32_t mo : {0u, 1u, 19u, 21u, 40u, 0x80000014u, 0xffffffffu}) {
    for (bool empty : {false, true}) {
      SCOPED_TRACE(mo);
      Machine m;
      Buffer to(m.memory, 100);
      m.receive(RecvWr({to.sge()}, 1));
      m.receive(RecvWr({to.sge()}, 2));
      ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, pattern(20), false))), RxStatus::kOk);
      EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, mo, empty ? Octets{} : pattern(20, 9)))),
                RxStatus::kFault);
      EXPECT_EQ(code_of(m), 0x1204);
      const std::vector<ibv_wc> got = m.received();
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].wr_id, 1u);
      EXPECT_EQ(got[0].status, IBV_WC_GENERAL_ERR);
      Octets expected = pattern(20);
      expected.resize(100);
      EXPECT_TRUE(to.content() == expected);
    }
  }
}

TEST(MessageRules, ANumberCountsOneMessageAndNoSegment) {
  for (uint32_t wrong : {0u, 1u, 3u, 4u, 0xffffffffu}) {
    for (bool after_a_segment : {false, true}) {
      SCOPED_TRACE(wrong);
      Machine m;
      Buffer to(m.memory, 100);
      for (uint64_t id = 0; id < 4; ++id) m.receive(RecvWr({to.sge()}, id));
      ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, pattern(8), false))), RxStatus::kOk);
      ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 8, pattern(8), false))), RxStatus::kOk);
      ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 16, pattern(8)))), RxStatus::kOk);
      if (after_a_segment) {
        ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 2, 0, pattern(8), false))), RxStatus::kOk);
      }
      EXPECT_EQ(m.feed(fpdu(untagged(3, 0, wrong, after_a_segment ? 8 : 0, pattern(8)))),
                RxStatus::kFault);
      EXPECT_EQ(code_of(m), 0x1203);
    }
  }
}

// Of every way to cut it, a message of exactly the receive's size fits, and one octet more does
// not. Of what is too long nothing is placed behind the receive.
TEST(MessageRules, AReceiveHoldsItsSizeToTheOctet) {
  constexpr size_t kSize = 99;
  for (size_t excess : {0u, 1u, 2u, 100u}) {
    for (size_t cut = 0; cut <= kSize; ++cut) {
      SCOPED_TRACE(std::to_string(excess) + " too many, cut at " + std::to_string(cut));
      Machine m;
      Buffer to(m.memory, 300);
      m.receive(RecvWr({to.sge(10, 40), to.sge(50, 0), to.sge(50, 59)}, 1));
      const Octets message = pattern(kSize + excess, 5);
      const std::span<const uint8_t> all(message);
      if (cut > 0) {
        ASSERT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, all.first(cut), false))), RxStatus::kOk);
      }
      const RxStatus status =
          m.feed(fpdu(untagged(3, 0, 1, static_cast<uint32_t>(cut), all.subspan(cut))));
      const std::vector<ibv_wc> got = m.received();
      ASSERT_EQ(got.size(), 1u);
      if (excess == 0) {
        EXPECT_EQ(status, RxStatus::kOk);
        EXPECT_EQ(got[0].status, IBV_WC_SUCCESS);
        EXPECT_EQ(got[0].byte_len, kSize);
        EXPECT_TRUE(std::equal(message.begin(), message.end(), to.data() + 10));
      } else {
        EXPECT_EQ(status, RxStatus::kFault);
        EXPECT_EQ(code_of(m), 0x1205);
        EXPECT_EQ(got[0].status, IBV_WC_LOC_LEN_ERR);
      }
      const auto untouched = [](uint8_t octet) { return octet == 0; };
      EXPECT_TRUE(std::all_of(to.data(), to.data() + 10, untouched));
      EXPECT_TRUE(std::all_of(to.data() + 109, to.data() + 300, untouched));
    }
  }
}

TEST(MessageRules, AReceiveOfNothingTakesASendOfNothingOnly) {
  Machine m;
  m.receive(RecvWr({}, 1));
  m.receive(RecvWr({{1, 0, 2}}, 2));
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 1, 0, {}))), RxStatus::kOk);
  EXPECT_EQ(m.feed(fpdu(untagged(3, 0, 2, 0, pattern(1)))), RxStatus::kFault);
  EXPECT_EQ(code_of(m), 0x1205);
}

// The largest ULPDU that the length field can name, of either kind and in pieces of odd sizes.
TEST(MessageRules, TheLargestSegmentsThereAre) {
  for (size_t piece : {1000000u, 65540u, 65535u, 4096u, 1u}) {
    Machine m({.initiator = false});
    Buffer to(m.memory, 65535), target(m.memory, 65535);
    m.receive(RecvWr({to.sge()}, 1));
    const Octets sent = pattern(65535 - 18, 1), written = pattern(65535 - 14, 2);
    const Octets stream = concat(fpdu(tagged(0, target.stag(), target.start(), written)),
                                 fpdu(untagged(3, 0, 1, 0, sent)));
    for (size_t at = 0; at < stream.size(); at += piece)
      ASSERT_EQ(m.feed({stream.data() + at, std::min(piece, stream.size() - at)}), RxStatus::kOk);
    EXPECT_EQ(m.received().at(0).byte_len, sent.size());
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), to.data()));
    EXPECT_TRUE(std::equal(written.begin(), written.end(), target.data()));
    EXPECT_TRUE(m.rx().at_boundary());
  }
}

}  // namespace
}  // namespace uiw::test
